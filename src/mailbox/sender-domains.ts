import { organizational } from "../domains/names"
import type { ParsedMail } from "./parse-task"

/** Header fields in which a domain speaks for the sender. */
const FIELDS = ["from", "return-path", "message-id", "dkim-signature"]

/** Bounds the work for one mail. */
const MOST_DOMAINS = 50
const MOST_CHARACTERS = 4_000

const DOMAIN = /(?<=@|\bd\s*=\s*)[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)+/giu

/**
 * The organizational domain of each domain that the sender names, by which DMARC compares them (RFC 7489,
 * 3.2). All are in lower case.
 */
export function organizationsOf(
  headers: ParsedMail["headers"],
  envelope_from: string,
): Record<string, string> {
  const values = FIELDS.flatMap((name) => headers[name] ?? []).concat(envelope_from)
  const named = values.flatMap((value) => value.slice(0, MOST_CHARACTERS).match(DOMAIN) ?? [])
  const domains = new Set(named.map((domain) => domain.toLowerCase()))
  const pairs = [...domains].slice(0, MOST_DOMAINS).map((one) => [one, organizational(one)])
  return Object.fromEntries(pairs)
}
