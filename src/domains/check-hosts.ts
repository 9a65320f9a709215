import { isLiteral } from "../core/destination"
import { DnsError, type Resolver } from "../core/dns"
import { bareName } from "../core/dns-wire"
import { mismatch, missing, type RecordResult, undecided } from "./check-result"

/** A hostile server could invent a new alias for each answer, without end. */
const MOST_ALIASES = 10

/** An MX record names our host; others beside it do no harm. `values` are `10 mx.example.com`. */
export async function checkMx(
  values: string[],
  host: string,
  zones: string[],
  dns: Resolver,
): Promise<RecordResult> {
  const targets = values.map((value) => value.slice(value.indexOf(" ") + 1))
  if (targets.includes(host)) return { ok: true }
  const [first] = targets
  if (first === undefined) return missing("not_there", "There is no MX record with this name yet.")
  if (targets.includes(".")) {
    return mismatch(
      "null_mx",
      'The MX record is ".", which says that this name accepts no mail. Remove it.',
    )
  }
  const numeric = targets.find(
    (target) => isLiteral(target) || isLiteral(withoutZone(target, zones)),
  )
  if (numeric) {
    const hint = `An MX record must name a host, never an address such as ${numeric}. Enter ${host} instead.`
    return mismatch("mx_address", hint)
  }
  if (targets.some((target) => withoutZone(target, zones) === host)) {
    const hint = `The DNS provider appended the zone to ${host}. Write it with a dot at the end: ${host}.`
    return mismatch("trailing_dot_missing", hint)
  }
  const elsewhere = `The MX record names ${targets.join(", ")}, not ${host}.`
  const alias = await aliasOf(first, dns)
  // Wherever it leads, it is not ours.
  if (alias instanceof DnsError) {
    return mismatch("mx_elsewhere", `${elsewhere} ${first} cannot be resolved: ${alias.message}`)
  }
  if (alias) {
    const hint = `The MX record names ${first}, which is an alias of ${alias}. It must name ${host} itself.`
    return mismatch("mx_alias", hint)
  }
  return mismatch("mx_elsewhere", elsewhere)
}

const withoutZone = (name: string, zones: string[]) => {
  const zone = zones.find((one) => name.endsWith(`.${one}`))
  return zone ? name.slice(0, -zone.length - 1) : name
}

/** The name is an alias of ours, directly or over others. */
export async function checkAlias(
  values: string[],
  host: string,
  zones: string[],
  dns: Resolver,
  name: string,
): Promise<RecordResult> {
  const [target] = values
  if (target === host) return { ok: true }
  if (target === undefined) return withoutAlias(name, host, dns)
  if (withoutZone(target, zones) === host) {
    const hint = `The DNS provider appended the zone to ${host}. Write it with a dot at the end: ${host}.`
    return mismatch("trailing_dot_missing", hint)
  }
  const elsewhere = `The CNAME record leads to ${target}, not to ${host}`
  let at = target
  for (let hops = 0; hops < MOST_ALIASES; hops++) {
    const next = await aliasOf(at, dns)
    if (next === host) return { ok: true }
    if (next === undefined) break
    if (next instanceof DnsError) {
      const hint = `${elsewhere}, and ${at} cannot be resolved: ${next.message}`
      return next.transient
        ? undecided("alias_unresolved", hint)
        : mismatch("alias_elsewhere", hint)
    }
    at = next
  }
  return mismatch("alias_elsewhere", `${elsewhere}.`)
}

/** What a name is an alias of, or why that is not known. */
const aliasOf = (name: string, dns: Resolver): Promise<string | DnsError | undefined> =>
  unlessUnknown(dns.cname(name).then(([alias]) => alias && bareName(alias)))

async function unlessUnknown<Value>(work: Promise<Value>): Promise<Value | DnsError> {
  try {
    return await work
  } catch (error) {
    if (error instanceof DnsError) return error
    throw error
  }
}

async function withoutAlias(name: string, host: string, dns: Resolver): Promise<RecordResult> {
  const found = await unlessUnknown(dns.a(name))
  const [address] = found instanceof DnsError ? [] : found
  if (address === undefined)
    return missing("not_there", "There is no CNAME record with this name yet.")
  const hint = `The name has the address ${address}. Replace it with a CNAME to ${host}.`
  return mismatch("address_instead", hint)
}
