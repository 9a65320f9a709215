import { describe, expect, test } from "bun:test"
import { isInside, isWithin, subscriberOf } from "../../src/lib/ip-ranges"

describe("a subscriber", () => {
  test.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
    ["2001:DB8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"],
    ["2001:db8:1:3::1", "2001:db8:1:3::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["no address", "no address"],
  ])("of %s is %s", (address, wanted) => {
    expect(subscriberOf(address)).toBe(wanted)
  })
})

describe("a mapped address", () => {
  test.each([
    ["::ffff:192.0.2.7", "192.0.2.0/24", true],
    ["192.0.2.7", "::ffff:192.0.2.0/120", true],
    ["192.0.2.7", "::ffff:0:0/96", true],
    ["192.0.2.7", "::/0", false],
    ["2001:db8::1", "0.0.0.0/0", false],
    ["192.0.2.7", "64:ff9b::192.0.2.7", false],
  ])("%s in %s: %j", (address, range, wanted) => {
    expect(isWithin(address, [range])).toBe(wanted)
  })
})

test.each([
  ["192.0.2.7", "192.0.2.0/24", true],
  ["192.0.2.0/25", "192.0.2.0/24", true],
  ["192.0.2.0/23", "192.0.2.0/24", false],
  ["::ffff:192.0.2.7", "192.0.2.0/24", true],
  ["0.0.0.0/0", "::/0", false],
  ["::/0", "2001:db8::/32", false],
  ["2001:db8::/48", "2001:db8::/32", true],
  ["garbage", "0.0.0.0/0", false],
])("all of %s is in %s: %j", (range, wide, wanted) => {
  expect(isInside(range, wide)).toBe(wanted)
})
