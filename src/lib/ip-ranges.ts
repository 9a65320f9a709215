import ipaddr from "ipaddr.js"

/** One address or one range in CIDR form, IPv4 or IPv6. */
export function isRange(text: string): boolean {
  return ipaddr.isValid(text) ? isPlain(text) : ipaddr.isValidCIDR(text)
}

/** Whether an address is in one of the ranges. An IPv4-mapped address equals its IPv4 form. */
export function isWithin(address: string, ranges: string[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const own = ipaddr.process(address)
  return ranges.some((range) => {
    if (!isRange(range)) return false
    const [base, bits] = parse(range)
    return own.kind() === base.kind() && own.match(base, bits)
  })
}

function parse(range: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  if (!range.includes("/")) {
    const one = ipaddr.process(range)
    return [one, one.kind() === "ipv4" ? 32 : 128]
  }
  const [base, bits] = ipaddr.parseCIDR(range)
  if (base.kind() === "ipv6" && (base as ipaddr.IPv6).isIPv4MappedAddress() && bits >= 96) {
    return [(base as ipaddr.IPv6).toIPv4Address(), bits - 96]
  }
  return [base, bits]
}

/** `127.1` and `0x7f.1` are addresses to the parser; in a list of ours they are mistakes. */
const isPlain = (text: string) => text.includes(":") || ipaddr.IPv4.isValidFourPartDecimal(text)
