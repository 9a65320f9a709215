/** What the tests use of a package without types. */
declare module "split-sms" {
  export function split(text: string): { characterSet: "GSM" | "Unicode"; parts: unknown[] }
}
