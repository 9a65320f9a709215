export { matchesType } from "../events/patterns"
