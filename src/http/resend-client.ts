/** Whether the program uses the client of Resend in some language: `resend-node:6.38.0`, `resend-go/3.12.0`. */
export const isResendClient = ({ headers }: Request): boolean =>
  headers.get("user-agent")?.startsWith("resend-") ?? false
