import { open, readFile } from "node:fs/promises"
import type { DnsAnswers, DnsQuestion } from "./dns-answers"
import { HEAD_BYTES } from "./header-rows"
import { evaluateSpf, type SpfResult, type SpfSender } from "./sender-policy"
import {
  type ReadHeader,
  readHeader,
  type SignatureVerdicts,
  validateSignatures,
} from "./signatures"

/** A mail, or the file that holds it: then its bytes never come to the main thread. */
export type MailSource = Uint8Array | { path: string }

export type VerifyStep =
  | { step: "header"; mail: MailSource }
  | { step: "signatures"; mail: MailSource; now: number; answers: DnsAnswers }
  | { step: "spf"; sender: SpfSender; answers: DnsAnswers }

/** The value is worth something once nothing is missing. */
export interface VerifyStepResult<T> {
  missing: DnsQuestion[]
  value: T
}

/** All bytes of a mail. Rejects with ENOENT where its file is gone. */
export const wholeMail = async (mail: MailSource): Promise<Uint8Array> =>
  mail instanceof Uint8Array ? mail : readFile(mail.path)

/** One step of `verify`, for a thread. It never waits for the network. */
export async function verifyStep(
  given: VerifyStep,
): Promise<VerifyStepResult<ReadHeader | SignatureVerdicts | SpfResult>> {
  const missing: DnsQuestion[] = []
  if (given.step === "header") return { missing, value: await readHeader(await head(given.mail)) }
  if (given.step === "spf") {
    const value = await evaluateSpf(given.sender, given.answers, missing)
    return { missing, value }
  }
  const { mail, now, answers } = given
  const value = await validateSignatures(await wholeMail(mail), new Date(now), answers, missing)
  return { missing, value }
}

async function head(mail: MailSource): Promise<Uint8Array> {
  if (mail instanceof Uint8Array) return mail
  await using file = await open(mail.path)
  const buffer = Buffer.alloc(HEAD_BYTES)
  const { bytesRead } = await file.read(buffer, 0, HEAD_BYTES, 0)
  return buffer.subarray(0, bytesRead)
}
