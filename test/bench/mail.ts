import { writeFileSync } from "node:fs"
import { join } from "node:path"

const BODY_BYTES = 1024

/** A send request of 1 KB, as an application would write it. `from` decides who may send it. */
function request(from: string) {
  const mail = {
    from,
    to: "user@mailbox.test",
    subject: "Your order has shipped",
    html: "",
    metadata: { order: "A-1029" },
  }
  const room = BODY_BYTES - JSON.stringify(mail).length
  mail.html = `<p>${"Hello, your order is on its way. ".repeat(40)}`.slice(0, room)
  return mail
}

/** Writes the body of one send, and returns its path. */
export function oneMail(folder: string, from: string): string {
  const path = join(folder, "mail.json")
  writeFileSync(path, JSON.stringify(request(from)))
  return path
}

/** As `oneMail`, for a batch of `count`. */
export function manyMails(folder: string, from: string, count: number): string {
  const path = join(folder, "mails.json")
  writeFileSync(path, JSON.stringify({ messages: Array(count).fill(request(from)) }))
  return path
}
