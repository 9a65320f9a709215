import { expect } from "bun:test"
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import PostalMime, { type Email } from "postal-mime"
import type { MailToCompose } from "../../src/emails/compose-task"
import { composeMail } from "../../src/emails/compose-task"
import { isClean } from "../../src/lib/mail-text"

/** The smallest mail there is. */
export const MAIL: MailToCompose = {
  message_id: "019a0000-0000-7000-8000-000000000001",
  domain: "example.test",
  created_at: "2026-01-02T03:04:05.678Z",
  from: { email: "bell@example.test", name: null },
  to: { email: "ann@example.test", name: null },
  cc: [],
  reply_to: [],
  subject: "Ding",
  text: "Dong.",
  html: null,
  headers: {},
  attachments: [],
  dkim: [],
}

/** The message as it leaves. */
export const rawOf = async (mail: MailToCompose) => (await composeMail(mail)).raw

/** What another parser reads in the message. */
export async function read(mail: Partial<MailToCompose>): Promise<Email & { raw: Uint8Array }> {
  const raw = await rawOf({ ...MAIL, ...mail })
  expect(isClean(raw)).toBe(true)
  return { ...(await PostalMime.parse(raw)), raw }
}

/** A folder of files to attach, removed with the scope. */
export function attachable() {
  const folder = mkdtempSync(join(tmpdir(), "belfry-compose-"))
  return {
    file(name: string, bytes: Uint8Array): string {
      const path = join(folder, createHash("sha256").update(name).digest("hex"))
      writeFileSync(path, bytes)
      return path
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  }
}
