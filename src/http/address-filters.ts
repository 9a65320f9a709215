import { Problems } from "../core/problems"
import { comparable, domainOf, notOneAddress, parseMailbox } from "../lib/address"

interface AddressFilters {
  to?: string | undefined
  from?: string | undefined
  domain?: string | undefined
}

/**
 * The filters of a list in the form in which addresses and domains compare. Throws 422, as
 * `invalid_email` where an address is the only thing that cannot be read.
 */
export function comparableFilters({ to, from, domain }: AddressFilters): AddressFilters {
  const problems = new Problems()
  const read = (path: string, text: string) => {
    const mailbox = parseMailbox(text)
    if (!mailbox) problems.add(path, "invalid_email", notOneAddress(text))
    return comparable(mailbox?.email ?? "")
  }
  const filters: AddressFilters = {}
  if (to !== undefined) filters.to = read("to", to)
  if (from !== undefined) filters.from = read("from", from)
  if (domain !== undefined) {
    filters.domain = domainOf(`x@${domain}`)
    if (filters.domain === "") problems.add("domain", "invalid", "This is not a domain name.")
  }
  problems.throwIfAny()
  return filters
}
