import { createPrivateKey, type KeyObject } from "node:crypto"
import { signRsa } from "../core/rsa"
import { sign, signable } from "../lib/dkim"
import { isClean } from "../lib/mail-lines"
import { type SigningKey, Uncomposable } from "./mail-to-compose"

const MAX_KEYS = 200

/** Reading a key takes half as long as signing with it, so the last ones used stay open. */
const opened = new Map<string, KeyObject>()

/**
 * The message with one DKIM-Signature for each key before it, as of `time` (seconds since 1970).
 * Throws Uncomposable where the result is not exactly that.
 */
export function signed(raw: Uint8Array, keys: SigningKey[], time: number): Uint8Array {
  if (keys.length === 0) return raw
  const message = signable(raw)
  const fields = keys.map(({ private_key, ...key }) =>
    sign(message, { ...key, time, key: open(private_key), rsa: signRsa }),
  )
  const head = Buffer.from(fields.join(""), "latin1")
  const lines = head.toString("latin1").match(/^DKIM-Signature: /gm)?.length
  if (lines !== keys.length || !isClean(head)) {
    throw new Uncomposable(`${lines} signatures instead of ${keys.length}`)
  }
  const whole = Buffer.allocUnsafeSlow(head.length + raw.length)
  whole.set(head)
  whole.set(raw, head.length)
  return whole
}

function open(private_key: string): KeyObject {
  const known = opened.get(private_key)
  const key = known ?? createPrivateKey(private_key)
  opened.delete(private_key)
  opened.set(private_key, key)
  const oldest = opened.keys().next().value
  if (opened.size > MAX_KEYS && oldest !== undefined) opened.delete(oldest)
  return key
}
