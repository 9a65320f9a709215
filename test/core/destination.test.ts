import { describe, expect, test } from "bun:test"
import { isAllowed, isLiteral, isOurs, isPublic, listening } from "../../src/core/destination"

test.each([
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "100.64.0.1",
  "100.127.255.255",
  "127.0.0.1",
  "127.255.255.254",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.1",
  "192.0.2.1",
  "192.168.1.1",
  "198.18.0.1",
  "198.19.255.255",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::7f00:1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::ffff:a00:1",
  "::ffff:0:127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b::10.0.0.1",
  "64:ff9b:1::1",
  "100::1",
  "2001::1",
  "2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "2001:db8::1",
  "2002:7f00:1::",
  "2002:a00:1::1",
  "fc00::1",
  "fd12:3456::1",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "ff02::1",
  "",
  "example.com",
])("%j is not the public internet", (text) => expect(isPublic(text)).toBe(false))

test.each([
  "1.1.1.1",
  "9.9.9.9",
  "100.128.0.1",
  "172.32.0.1",
  "192.169.0.1",
  "198.20.0.1",
  "223.255.255.254",
  "::ffff:8.8.8.8",
  "64:ff9b::808:808",
  "2606:4700:4700::1111",
  "2a00:1450:4001::1",
])("%j is the public internet", (text) => expect(isPublic(text)).toBe(true))

describe("the operator's list", () => {
  test.each([
    ["localhost", "127.0.0.1", ["127.0.0.0/8"]],
    ["x.test", "::ffff:10.1.2.3", ["10.0.0.0/8"]],
    ["x.test", "::1", ["::1"]],
    ["x.test", "fd00::5", ["10.0.0.0/8", "fd00::/8"]],
    ["Hooks.Internal.", "192.168.0.9", ["hooks.internal"]],
  ])("lets %s at %s through by %p", (host, address, list) => {
    expect(isAllowed(host, address, list)).toBe(true)
  })

  test.each([
    ["localhost", "127.0.0.1", []],
    ["x.test", "10.0.0.1", ["127.0.0.0/8", "::/0"]],
    ["x.hooks.internal", "10.0.0.1", ["hooks.internal"]],
    ["x.test", "nonsense", ["0.0.0.0/0"]],
  ])("does not let %s at %s through by %p", (host, address, list) => {
    expect(isAllowed(host, address, list)).toBe(false)
  })
})

describe("our own listeners", () => {
  test("are known by address and port while they listen", () => {
    const stop = listening("127.0.0.1", 4321)
    expect(isOurs("127.0.0.1", 4321)).toBe(true)
    expect(isOurs("::ffff:127.0.0.1", 4321)).toBe(true)
    expect(isOurs("127.0.0.1", 4322)).toBe(false)
    expect(isOurs("127.0.0.2", 4321)).toBe(false)
    stop()
    expect(isOurs("127.0.0.1", 4321)).toBe(false)
  })

  test.each(["0.0.0.0", "::", ""])("on %j are at every address of the machine", (all) => {
    const stop = listening(all, 4321)
    expect(isOurs("127.0.0.9", 4321)).toBe(true)
    expect(isOurs("::1", 4321)).toBe(true)
    expect(isOurs("8.8.8.8", 4321)).toBe(false)
    stop()
  })

  test("may listen twice on one port, and each is taken back once", () => {
    const stops = [listening("127.0.0.1", 4321), listening("::1", 4321), listening("::1", 4321)]
    stops[1]?.()
    stops[1]?.()
    expect([isOurs("::1", 4321), isOurs("127.0.0.1", 4321)]).toEqual([true, true])
    stops[2]?.()
    expect([isOurs("::1", 4321), isOurs("127.0.0.1", 4321)]).toEqual([false, true])
    stops[0]?.()
    expect(isOurs("127.0.0.1", 4321)).toBe(false)
  })
})

test("a literal is what needs no name server", () => {
  for (const text of ["127.0.0.1", "::1", "fe80::1%eth0"]) expect(isLiteral(text)).toBe(true)
  for (const text of ["", "hooks.test", "1.2.3.4.test"]) expect(isLiteral(text)).toBe(false)
})

test("a list that grew is read again", () => {
  const list = ["10.0.0.0/8"]
  expect(isAllowed("x.test", "127.0.0.1", list)).toBe(false)
  list.push("127.0.0.1")
  expect(isAllowed("x.test", "127.0.0.1", list)).toBe(true)
})
