import { version } from "../../package.json"

/** As in `package.json`; the binary carries it. */
export const VERSION: string = version
