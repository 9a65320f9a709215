import { writeFileSync } from "node:fs"
import { join } from "node:path"

const REQUEST_BYTES = 1024

/** A send request, as an application would write it. `from` decides who may send it. */
function request(from: string, bytes = REQUEST_BYTES) {
  const mail = {
    from,
    to: "user@mailbox.test",
    subject: "Your order has shipped",
    html: "",
    metadata: { order: "A-1029" },
  }
  const room = bytes - JSON.stringify(mail).length
  mail.html = htmlOf(room)
  return mail
}

/** Html of so many bytes. */
export const htmlOf = (bytes: number): string =>
  `<p>${"Hello, your order is on its way. ".repeat(bytes / 25)}`.slice(0, bytes)

/** Writes the body of one send, and returns its path. */
export function oneMail(folder: string, from: string, bytes = REQUEST_BYTES): string {
  const path = join(folder, "mail.json")
  writeFileSync(path, JSON.stringify(request(from, bytes)))
  return path
}

/** As `oneMail`, for a batch of `count`. */
export function manyMails(
  folder: string,
  from: string,
  count: number,
  bytes = REQUEST_BYTES,
): string {
  const path = join(folder, "mails.json")
  writeFileSync(path, JSON.stringify({ messages: Array(count).fill(request(from, bytes)) }))
  return path
}
