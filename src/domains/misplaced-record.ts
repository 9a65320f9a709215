import type { Authority } from "./authoritative"
import { checkDkim } from "./check-dkim"
import { isPolicy } from "./check-dmarc"
import { missing, type RecordResult } from "./check-result"
import type { DomainRow, Expected } from "./expected-records"
import { organizational } from "./names"

/** Names that others give their keys, where ours may have been put by habit. */
const SELECTORS = ["svc1", "svc2", "default", "dkim", "mail", "s1", "selector1", "k1"]

interface MisplacedSpot {
  host: string
  result: RecordResult
}

/**
 * Looks for a record that is not where it should be in the places where people put it by mistake:
 * with the zone appended twice, without its underscore, one level off. Undefined when it is nowhere.
 */
export async function findMisplaced(
  authority: Authority,
  row: DomainRow,
  record: Expected,
): Promise<RecordResult | undefined> {
  const places = record.purpose === "tracking" ? [] : placesOf(row.domain, record)
  const all = await Promise.all(
    places.map(async ({ host, result }) => {
      const values = await authority.peek(host, record.type)
      return values.some((value) => isOurs(value, record)) ? result : undefined
    }),
  )
  return all.find((result) => result !== undefined)
}

/** Whether the value is the one we look for, or would do in its place. */
function isOurs(value: string, { purpose, type, value: wanted, dkim }: Expected): boolean {
  const bare = value.replace(/["\\]/g, "")
  if (type === "CNAME") return value === wanted
  if (purpose === "dkim" && dkim) return checkDkim([bare], dkim).ok
  if (purpose === "dmarc") return isPolicy(bare)
  if (purpose === "spf") return /^v=spf1 /i.test(bare) && sharesMechanism(bare, wanted)
  if (purpose === "verification") return bare.trim() === wanted
  return bare.endsWith(` ${wanted}`)
}

const sharesMechanism = (value: string, wanted: string) =>
  wanted
    .split(" ")
    .slice(1, -1)
    .every((mechanism) => value.toLowerCase().includes(mechanism.toLowerCase()))

function placesOf(domain: string, record: Expected): MisplacedSpot[] {
  const { host, dkim } = record
  const zone = organizational(domain)
  const [first = "", ...rest] = host.split(".")
  const twice = [...new Set([domain, zone])].map((name) => `${host}.${name}`)
  const bare = host
    .split(".")
    .map((label) => label.replace(/^_/, ""))
    .join(".")
  const hintOf = isOfOneName(record) ? elsewhere : besides
  const places = [
    ...twice.map((name) => put(name, "zone_appended_twice", appended(name, host, zone))),
    ...(bare === host ? [] : [put(bare, "underscore_dropped", underscore(bare, host))]),
    ...levelsOff(host, domain, zone).map((name) => put(name, "wrong_name", hintOf(name, host))),
  ]
  if (!dkim) return places
  const below = rest.join(".")
  const others = SELECTORS.filter((selector) => selector !== first)
  const name = (selector: string) => `${selector}.${below}`
  const wrong = others.map((one) => put(name(one), "wrong_selector", selector(name(one), first)))
  const bald = `${first}.${domain}`
  return [
    ...places,
    put(bald, "wrong_name", elsewhere(bald, host)),
    put(below, "wrong_name", elsewhere(below, host)),
    ...wrong,
  ]
}

/** At the domain itself, under the same label at the domain above, and at that one itself. */
function levelsOff(host: string, domain: string, zone: string): string[] {
  const label = host.slice(0, -domain.length)
  const names = [domain, `${label}${zone}`, zone]
  return [...new Set(names)].filter((name) => name !== host)
}

/** What no other name can need: a token or a key of this domain, and a policy, which counts at `_dmarc` only. */
const isOfOneName = ({ purpose, type }: Expected) => purpose !== "spf" && type !== "MX"

const put = (host: string, mistake: string, hint: string): MisplacedSpot => ({
  host,
  result: missing(mistake, hint),
})

const appended = (found: string, host: string, zone: string) =>
  `The record is at ${found}: the DNS provider appended ${zone} by itself. Enter "${host.slice(0, -zone.length - 1) || "@"}" as the name.`

const underscore = (found: string, host: string) =>
  `The record is at ${found}, without the underscore. The name must be ${host}.`

const elsewhere = (found: string, host: string) =>
  `The record is at ${found}. It must be at ${host}.`

/** For records that the parent domain may need as well: its own SPF or MX record. */
const besides = (found: string, host: string) =>
  `There is such a record at ${found}. Leave it, because it may be needed there. Add another one at ${host}.`

const selector = (found: string, wanted: string) =>
  `The key is at ${found}, but the selector must be ${wanted}.`
