import { createPrivateKey, type KeyObject } from "node:crypto"
import { Type as t } from "@sinclair/typebox"
import { type NetAnswer, NetError, type NetRequest, request } from "../../core/net"
import { millis } from "../../core/time"
import { objectIn } from "../../lib/text"
import { ProviderError } from "../../providers/provider"
import { type PushAnswer, pushOutcome } from "./provider"

/** In milliseconds, for everything together. */
const TIMEOUT_MS = 10_000
const CAPTURE_BYTES = 16 * 1024

type VendorRequest = Omit<NetRequest, "timeout_ms" | "capture_bytes">

export type VendorReader = (answer: NetAnswer, body: Record<string, unknown>) => PushAnswer

/** Asks a vendor once, through the one function that leaves the server. What was lost is asked again later. */
export async function asked(options: VendorRequest, read: VendorReader): Promise<PushAnswer> {
  try {
    const limits = { timeout_ms: TIMEOUT_MS, capture_bytes: CAPTURE_BYTES }
    const answer = await request({ ...options, ...limits, repeatable: true })
    const { length } = answer.body
    return read(answer, (length > 0 && objectIn(new TextDecoder().decode(answer.body))) || {})
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    return { meaning: "unreachable", said: error.message }
  }
}

/** No token can be had: what that means for a message. */
export class NoTokenError extends Error {
  override readonly name = "NoTokenError"
  readonly answer: PushAnswer

  constructor(answer: PushAnswer) {
    super(answer.said ?? answer.meaning)
    this.answer = answer
  }
}

interface MadeToken {
  text: string
  lifetime_ms: number
}

/** A token that stands for the credentials: made once at a time, and kept for its lifetime. */
export class KeptToken {
  readonly #make: () => Promise<MadeToken>
  #making: Promise<string> | undefined
  #kept = { text: "", until: 0 }

  /** `make` rejects with NoTokenError. */
  constructor(make: () => Promise<MadeToken>) {
    this.#make = make
  }

  /** Asks with the token, and once more with a new one where the vendor calls that one old. */
  async use(
    ask: (token: string) => Promise<PushAnswer>,
    isOld: (answer: PushAnswer) => boolean,
  ): Promise<PushAnswer> {
    try {
      const token = await this.#take()
      const answer = await ask(token)
      if (!isOld(answer)) return answer
      if (this.#kept.text === token) this.#kept.until = 0
      return await ask(await this.#take())
    } catch (error) {
      if (error instanceof NoTokenError) return error.answer
      throw error
    }
  }

  #take(): Promise<string> {
    const { text, until } = this.#kept
    if (millis() < until) return Promise.resolve(text)
    this.#making ??= this.#renew().finally(() => {
      this.#making = undefined
    })
    return this.#making
  }

  async #renew(): Promise<string> {
    const { text, lifetime_ms } = await this.#make()
    this.#kept = { text, until: millis() + lifetime_ms }
    return text
  }
}

/** For `check` of a provider: what was found, in words. Rejects with ProviderError. */
export async function checked(provider: string, asking: Promise<PushAnswer>): Promise<string> {
  const answer = await asking
  const { said, meaning } = answer
  if (meaning === "sent") return said ?? ""
  const { fault = "infrastructure" } = pushOutcome(provider, { to: [] }, answer)
  throw new ProviderError(fault, said ?? meaning)
}

/** A private key in PEM. */
export const PrivateKey = t.String({ maxLength: 16_384, pattern: "-----BEGIN" })

/** The key in the PEM, where it is of this kind. */
export function privateKey(pem: unknown, kind: "ec" | "rsa"): KeyObject | undefined {
  try {
    const key = createPrivateKey(String(pem))
    const { asymmetricKeyType, asymmetricKeyDetails } = key
    const is_p256 = asymmetricKeyDetails?.namedCurve === "prime256v1"
    return asymmetricKeyType === kind && (kind === "rsa" || is_p256) ? key : undefined
  } catch {
    return undefined
  }
}
