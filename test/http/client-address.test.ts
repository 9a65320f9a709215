import { expect, test } from "bun:test"
import { clientAddress } from "../../src/http/target"

const PROXY = "10.0.0.1"

test.each<[string, string | undefined, string[], string]>([
  // Nobody is trusted: whatever the header says, the peer is the caller.
  ["192.0.2.1", undefined, [], "192.0.2.1"],
  ["192.0.2.1", "203.0.113.9", [], "192.0.2.1"],
  ["192.0.2.1", "203.0.113.9", ["10.0.0.0/8"], "192.0.2.1"],
  ["::ffff:192.0.2.1", undefined, [], "192.0.2.1"],
  // From a proxy of ours: the right-most that is not one of them.
  [PROXY, "203.0.113.9", ["10.0.0.0/8"], "203.0.113.9"],
  [`::ffff:${PROXY}`, "203.0.113.9", ["10.0.0.0/8"], "203.0.113.9"],
  [PROXY, "198.51.100.7, 203.0.113.9", ["10.0.0.0/8"], "203.0.113.9"],
  [PROXY, "203.0.113.9, 10.9.9.9 ,10.0.0.2", ["10.0.0.0/8"], "203.0.113.9"],
  [PROXY, "::ffff:203.0.113.9", ["10.0.0.0/8"], "203.0.113.9"],
  [PROXY, "2001:db8::7", ["10.0.0.0/8"], "2001:db8::7"],
  ["2001:db8::1", "203.0.113.9", ["2001:db8::/32"], "203.0.113.9"],
  // What cannot be read is not believed, nor what stands before it.
  [PROXY, undefined, ["10.0.0.0/8"], PROXY],
  [PROXY, "", ["10.0.0.0/8"], PROXY],
  [PROXY, "203.0.113.9, unknown", ["10.0.0.0/8"], PROXY],
  [PROXY, "203.0.113.9:4711", ["10.0.0.0/8"], PROXY],
  [PROXY, "10.0.0.2, 10.0.0.3", ["10.0.0.0/8"], PROXY],
])("%s saying %p behind %j is %s", (peer, forwarded, trusted, expected) => {
  const headers = new Headers(forwarded === undefined ? {} : { "x-forwarded-for": forwarded })
  expect(clientAddress(peer, headers, trusted)).toBe(expected)
})
