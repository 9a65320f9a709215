import ipaddr from "ipaddr.js"

/** One address or one range in CIDR form, IPv4 or IPv6, without a zone. */
export function isRange(text: string): boolean {
  const [base = "", bits, ...rest] = text.split("/")
  if (rest.length > 0 || !isPlain(base)) return false
  if (bits === undefined) return true
  if (!/^(0|[1-9]\d{0,2})$/.test(bits) || !ipaddr.isValidCIDR(text)) return false
  return !isMapped(base) || Number(bits) >= MAPPED_BITS
}

/** One address as programs write it: no octal, hexadecimal or shortened IPv4 (`127.1`). */
export const isAddress = (text: string) =>
  isPlain(text.includes(":") ? text.replace(/%[\w.-]+$/, "") : text)

/** Whether an address is in one of the ranges. An IPv4-mapped address equals its IPv4 form. */
export function isWithin(address: string, ranges: string[]): boolean {
  if (!isAddress(address)) return false
  const own = ipaddr.process(address)
  return ranges.some((range) => {
    if (!isRange(range)) return false
    const [base, bits] = parse(range)
    return own.kind() === base.kind() && own.match(base, bits)
  })
}

/** Whether every address of one range is in the other. */
export function isInside(range: string, wide: string): boolean {
  if (!isRange(range) || !isRange(wide)) return false
  const [base, bits] = parse(range)
  const [wide_base, wide_bits] = parse(wide)
  if (base.kind() !== wide_base.kind() || bits < wide_bits) return false
  return base.match(wide_base, wide_bits)
}

/**
 * The range of one subscriber: an IPv4 address, or the /64 of an IPv6 address (RFC 6177), because a
 * subscriber can use a new address of it for every request. A text that is no address is returned
 * as it is.
 */
export function subscriberOf(address: string): string {
  if (!isAddress(address)) return address
  const own = ipaddr.process(address)
  if (own instanceof ipaddr.IPv4) return own.toString()
  const network = own.parts.slice(0, 4).map((part) => part.toString(16))
  return `${network.join(":")}::/64`
}

/** The neighbourhood of an address, in which people move without leaving home: the /24, or the /48 of IPv6. */
export function networkOf(address: string): string {
  if (!isAddress(address)) return address
  const own = ipaddr.process(address)
  if (own instanceof ipaddr.IPv4) return `${own.octets.slice(0, 3).join(".")}.0/24`
  return `${own.parts
    .slice(0, 3)
    .map((part) => part.toString(16))
    .join(":")}::/48`
}

/** The address as a text of its bytes: four of IPv4, also where it is mapped, sixteen of IPv6. */
export const addressBytes = (address: string): string =>
  String.fromCharCode(...ipaddr.process(address).toByteArray())

/** The address of these bytes, as people write it. */
export const addressOf = (bytes: string): string =>
  ipaddr.fromByteArray([...Buffer.from(bytes, "latin1")]).toString()

function parse(range: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (!range.includes("/")) {
    const one = ipaddr.process(range)
    return [one, one.kind() === "ipv4" ? 32 : 128]
  }
  const [base, bits] = ipaddr.parseCIDR(range)
  if (base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= MAPPED_BITS) {
    return [base.toIPv4Address(), bits - MAPPED_BITS]
  }
  return [base, bits]
}

/** `::ffff:0:0/96` holds the IPv4 addresses; a wider range of it would mean nothing. */
const MAPPED_BITS = 96

const isMapped = (text: string) =>
  text.includes(":") && ipaddr.IPv6.parse(text).isIPv4MappedAddress()

/** `127.1`, `010.0.0.1` and `0x7f.1` are addresses to the parser; in a list of ours mistakes. */
function isPlain(text: string): boolean {
  if (text.includes(":")) return !text.includes("%") && ipaddr.IPv6.isValid(text)
  return ipaddr.IPv4.isValidFourPartDecimal(text)
}
