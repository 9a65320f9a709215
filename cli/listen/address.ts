import { usage } from "../failure"

/** As people write it: `localhost:3000/hooks`, `:3000`, or a whole URL. */
export function receiverAddress(text: string): string {
  const whole = text.includes("://") ? text : `http://${text.replace(/^(?=:)/, "localhost")}`
  const is_web = /^https?:\/\//i.test(whole)
  if (!is_web || !URL.canParse(whole) || new URL(whole).hostname === "") {
    throw usage(`"${text}" is not the address of a receiver`, "write localhost:3000/hooks")
  }
  return new URL(whole).href
}
