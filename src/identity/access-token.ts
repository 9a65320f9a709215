import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto"
import { fail } from "../core/errors"
import { isUuid, newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { millis } from "../core/time"
import { type ProvingKey, signToken, type TokenSigner, verifyToken } from "../lib/signed-token"
import * as instanceValues from "../store/instance-values"
import type { Store, Tx } from "../store/store"

export const ACCESS_SECONDS = 900

const SIGNING_KEY = "console_signing_key"
const TYPE = "at+jwt"

type SigningKey = TokenSigner & ProvingKey

/** A person with a session, or a page that has the rights of an API key. */
export type Bearer = UserBearer | { key_id: string; session_id: string }

export interface UserBearer {
  user_id: string
  session_id: string
}

/** The value of the claim `caller` in the token of a page that has the rights of a key. */
const OF_KEY = "key"

interface AccessParts {
  store: Store
  secrets: Secrets
  /** The public address of this instance; asked at each use, since a free port is known late. */
  base_url: () => string
}

/**
 * Short-lived proof of a console session: a JWT (RFC 9068) signed with Ed25519. The key is made at
 * the first start, belongs to the database, and is sealed in it, so that every node knows it.
 */
export class AccessTokens {
  readonly #parts: AccessParts
  #key: SigningKey | undefined

  constructor(parts: AccessParts) {
    this.#parts = parts
  }

  /** Makes the key where there is none yet. `verify` does it too, on first use. */
  async ready(): Promise<void> {
    const kept = await instanceValues.find(this.#parts.store.read, SIGNING_KEY)
    this.#key = kept ? this.#open(kept) : await this.#parts.store.tx((tx) => this.#keyIn(tx))
  }

  /** Inside the transaction that makes the session. */
  async sign(tx: Tx, bearer: Bearer): Promise<string> {
    const key = await this.#keyIn(tx)
    const subject =
      "key_id" in bearer ? { sub: bearer.key_id, caller: OF_KEY } : { sub: bearer.user_id }
    const iat = Math.floor(millis() / 1000)
    const claims = {
      ...this.#names(),
      ...subject,
      sid: bearer.session_id,
      iat,
      exp: iat + ACCESS_SECONDS,
      jti: newId(),
    }
    return signToken(key, TYPE, claims)
  }

  /**
   * The user or the key of the token. Throws 401 `unauthorized`, with the same words for every fault. The
   * caller looks up whether the session still lives.
   */
  async verify(token: string): Promise<Bearer> {
    if (!this.#key) await this.ready()
    const key = this.#key
    if (!key) return refuse()
    const { iss, aud } = this.#names()
    const rules = { issuer: iss, audience: aud, type: TYPE, claims: ["sub", "sid"] }
    try {
      const { sub, sid, caller } = await verifyToken(token, key, {
        ...rules,
        at: new Date(millis()),
      })
      if (!isId(sub) || !isId(sid)) return refuse()
      if (caller === undefined) return { user_id: sub, session_id: sid }
      return caller === OF_KEY ? { key_id: sub, session_id: sid } : refuse()
    } catch {
      return refuse()
    }
  }

  #names() {
    const base = this.#parts.base_url()
    return { iss: `${base}/console`, aud: `${base}/v1` }
  }

  async #keyIn(tx: Tx): Promise<SigningKey> {
    if (this.#key) return this.#key
    const key = this.#open(await instanceValues.initialize(tx, SIGNING_KEY, this.#make()))
    tx.afterCommit(() => {
      this.#key = key
    })
    return key
  }

  #make(): string {
    const { privateKey } = generateKeyPairSync("ed25519")
    const pem = privateKey.export({ type: "pkcs8", format: "pem" })
    return this.#parts.secrets.seal(JSON.stringify({ kid: newId(), pem }), SIGNING_KEY)
  }

  #open(sealed: string): SigningKey {
    const text = this.#parts.secrets.open(sealed, SIGNING_KEY)
    const { kid, pem } = JSON.parse(text) as { kid: string; pem: string }
    const private_key = createPrivateKey(pem)
    return { kid, private_key, public_key: createPublicKey(private_key) }
  }
}

const refuse = () =>
  fail("unauthorized", "The access token is missing, expired or not valid. Sign in again.")

const isId = (claim: unknown): claim is string => typeof claim === "string" && isUuid(claim)
