import type { JobKind } from "../jobs/jobs"
import { perStore } from "../store/cached"
import type { InboundRow } from "./tables"

/** A mail as it was written a moment ago: its rows, and the raw message that stands in the database. */
interface ArrivedMail {
  rows: InboundRow[]
  raw: Buffer
}

const MOST_BYTES = 8 * 1024 * 1024

/** What the rows of a mail take beside its bytes, roughly. */
const ROW_BYTES = 2 * 1024

/**
 * Mails between their commit and the job that reads them, so that they need not be read again. What
 * becomes of a row meanwhile is found out where the mail is made known. Another node may have the job,
 * so the oldest ones go when there are too many.
 */
class ArrivedMails {
  readonly #mails = new Map<string, ArrivedMail>()
  #bytes = 0

  /** After the commit. */
  keep(mail: ArrivedMail) {
    const [first] = mail.rows
    if (!first) return
    this.#mails.set(first.id, mail)
    this.#bytes += sizeOf(mail)
    for (const id of this.#mails.keys()) {
      if (this.#bytes <= MOST_BYTES) return
      this.remove([id])
    }
  }

  remove([first = ""]: string[]): ArrivedMail | undefined {
    const mail = this.#mails.get(first)
    if (!mail) return undefined
    this.#mails.delete(first)
    this.#bytes -= sizeOf(mail)
    return mail
  }
}

const sizeOf = ({ rows, raw }: ArrivedMail) => raw.length + rows.length * ROW_BYTES

export const arrivedMailsOf = perStore(() => new ArrivedMails())

/** Reads one mail that came in, for all of its recipients. */
export const inboundProcess: JobKind<{ ids: string[] }> = {
  name: "inbound.process",
  schedule: (attempt) =>
    attempt < MOST_ATTEMPTS ? Math.min(5 * attempt, LONGEST_WAIT) : undefined,
}

const MOST_ATTEMPTS = 200
const LONGEST_WAIT = 600
