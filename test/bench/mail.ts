import { writeFileSync } from "node:fs"
import { join } from "node:path"

const REQUEST_BYTES = 1024

/** A send request, as an application would write it. `from` decides who may send it. */
function request(from: string) {
  const mail = {
    from,
    to: "user@mailbox.test",
    subject: "Your order has shipped",
    html: "",
    metadata: { order: "A-1029" },
  }
  const room = REQUEST_BYTES - JSON.stringify(mail).length
  mail.html = htmlOf(room)
  return mail
}

const WORDS =
  "hello your order has left us and will be with you tomorrow if the courier finds somebody at home who takes it from him please keep this number until everything arrived in good shape because we need it whenever you write or call about something that is missing broken late or not what was expected thanks again for choosing our small shop on harbour street number seventeen where fresh bread coffee honey letters paper ink candles and wooden toys wait for every curious visitor between nine o'clock and half past six except on sunday".split(
    " ",
  )

/**
 * Text of so many bytes in lines as people write them: the same bytes on the wire, whoever sends it,
 * and no more alike than a letter is, since ours keeps bodies packed.
 */
export function textOf(bytes: number): string {
  let text = ""
  let line = ""
  for (let state = 1; text.length < bytes; ) {
    state = (state * 48_271) % 2_147_483_647
    line += `${WORDS[state % WORDS.length]} `
    if (line.length < 68) continue
    text += `${line.trimEnd()}\r\n`
    line = ""
  }
  return text.slice(0, bytes)
}

/** Html of so many bytes. */
const htmlOf = (bytes: number): string =>
  `<p>${"Hello, your order is on its way. ".repeat(bytes / 25)}`.slice(0, bytes)

/** A send request for a plain text of so many bytes. */
const letter = (from: string, bytes: number) => ({
  from,
  to: "user@mailbox.test",
  subject: "Your order has shipped",
  text: textOf(bytes),
})

/** As `oneMail`, for a plain text: what peers send has no second part either. */
export function oneLetter(folder: string, from: string, bytes: number): string {
  const path = join(folder, "letter.json")
  writeFileSync(path, JSON.stringify(letter(from, bytes)))
  return path
}

/** As `oneLetter`, for a batch of `count`. */
export function manyLetters(folder: string, from: string, count: number, bytes: number): string {
  const path = join(folder, "letters.json")
  writeFileSync(path, JSON.stringify({ messages: Array(count).fill(letter(from, bytes)) }))
  return path
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
