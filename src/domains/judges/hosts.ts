import { isAddress } from "../../core/addresses"
import type { Resolver } from "../../core/dns"
import { mismatch, missing, type Verdict } from "./verdict"

/** Whoever answers may make up a new alias for each one, without end. */
const MOST_ALIASES = 10

/** An MX record names our host; others beside it do no harm. `values` are `10 mx.example.com`. */
export async function judgeMx(
  values: string[],
  host: string,
  zones: string[],
  dns: Resolver,
): Promise<Verdict> {
  const targets = values.map((value) => value.slice(value.indexOf(" ") + 1))
  if (targets.includes(host)) return { ok: true }
  const [first] = targets
  if (first === undefined) return missing("not_there", "There is no MX record of this name yet.")
  if (targets.includes(".")) {
    return mismatch("null_mx", 'The MX record is ".", which says that no mail is taken. Remove it.')
  }
  const numeric = targets.find(
    (target) => isAddress(target) || isAddress(withoutZone(target, zones)),
  )
  if (numeric) {
    const hint = `An MX record names a host, never an address such as ${numeric}: put ${host} there.`
    return mismatch("mx_address", hint)
  }
  if (targets.some((target) => withoutZone(target, zones) === host)) {
    const hint = `The zone was appended to ${host}. Write it with a dot at the end: ${host}.`
    return mismatch("trailing_dot_missing", hint)
  }
  const [alias] = await dns.cname(first)
  if (alias) {
    const hint = `The MX record names ${first}, an alias of ${alias}. It has to name ${host} itself.`
    return mismatch("mx_alias", hint)
  }
  return mismatch("mx_elsewhere", `The MX record names ${targets.join(", ")}, not ${host}.`)
}

const withoutZone = (name: string, zones: string[]) => {
  const zone = zones.find((one) => name.endsWith(`.${one}`))
  return zone ? name.slice(0, -zone.length - 1) : name
}

/** The name is an alias of ours, directly or over others. */
export async function judgeAlias(
  values: string[],
  host: string,
  zones: string[],
  dns: Resolver,
  name: string,
): Promise<Verdict> {
  const [target] = values
  if (target === host) return { ok: true }
  if (target === undefined) return withoutAlias(name, host, dns)
  if (withoutZone(target, zones) === host) {
    const hint = `The zone was appended to ${host}. Write it with a dot at the end: ${host}.`
    return mismatch("trailing_dot_missing", hint)
  }
  let next: string | undefined = target
  for (let hops = 0; hops < MOST_ALIASES && next !== undefined; hops++) {
    ;[next] = await dns.cname(next)
    if (next?.toLowerCase().replace(/\.$/, "") === host) return { ok: true }
  }
  return mismatch("alias_elsewhere", `The CNAME record leads to ${target}, not to ${host}.`)
}

async function withoutAlias(name: string, host: string, dns: Resolver): Promise<Verdict> {
  const [address] = await dns.a(name)
  if (address === undefined)
    return missing("not_there", "There is no CNAME record of this name yet.")
  const hint = `The name has the address ${address}. Put a CNAME to ${host} in its place.`
  return mismatch("address_instead", hint)
}
