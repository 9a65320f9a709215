import { expect, test } from "bun:test"
import { requireOwnPage, requireThisMachine } from "../../src/http/cors"

const asking = (headers: Record<string, string>) =>
  new Request("http://localhost/session", { method: "POST", headers })

const isTaken = (check: () => void) => {
  try {
    check()
    return true
  } catch (error) {
    return (error as { details: { reason: string } }).details.reason
  }
}

test.each<[string, string, Record<string, string>, true | string]>([
  // The peer and the name are both of this machine.
  ["127.0.0.1", "127.0.0.1:8080", {}, true],
  ["127.9.9.9", "localhost", {}, true],
  ["::1", "[::1]:8080", {}, true],
  // A peer from elsewhere may name itself as it likes.
  ["192.0.2.9", "127.0.0.1:8080", {}, "not_this_machine"],
  ["10.0.0.2", "localhost:8080", {}, "not_this_machine"],
  ["2001:db8::1", "[::1]:8080", {}, "not_this_machine"],
  ["unknown", "localhost", {}, "not_this_machine"],
  // A program that passes the request on has it from somewhere else.
  ["127.0.0.1", "127.0.0.1", { via: "1.1 x" }, "not_this_machine"],
  ["127.0.0.1", "127.0.0.1", { forwarded: "for=127.0.0.1" }, "not_this_machine"],
  ["127.0.0.1", "127.0.0.1", { "x-forwarded-host": "x.test" }, "not_this_machine"],
  ["127.0.0.1", "127.0.0.1", { "x-real-ip": "192.0.2.9" }, "not_this_machine"],
  // One that says nothing of itself leaves the origin of the page.
  ["127.0.0.1", "127.0.0.1:8080", { origin: "https://mail.example.com" }, "not_this_machine"],
  ["127.0.0.1", "127.0.0.1:8080", { origin: "null" }, "not_this_machine"],
  ["127.0.0.1", "127.0.0.1:8080", { origin: "http://localhost:8080" }, true],
  ["::1", "[::1]:8080", { origin: "http://[::1]:8080" }, true],
  // A name that somebody else points here.
  ["127.0.0.1", "evil.test:8080", {}, "not_this_machine"],
  ["127.0.0.1", "localhost.evil.test", {}, "not_this_machine"],
  ["127.0.0.1", "127.0.0.1@evil.test", {}, "not_this_machine"],
  ["127.0.0.1", "", {}, "not_this_machine"],
])("a link from %s at %p with %j: %p", (ip, host, headers, expected) => {
  expect(isTaken(() => requireThisMachine(asking({ host, ...headers }), ip))).toBe(expected)
})

const BASE = "https://mail.example.com"
const OWN = { "x-belfry-csrf": "1" }

test.each<[Record<string, string>, true | string]>([
  [{ ...OWN, "sec-fetch-site": "same-origin" }, true],
  [{ ...OWN, origin: BASE, host: "10.0.0.1:8080" }, true],
  [{ ...OWN, origin: "http://10.0.0.1:8080", host: "10.0.0.1:8080" }, true],
  [{ "sec-fetch-site": "same-origin" }, "csrf_header_missing"],
  [{ ...OWN, "sec-fetch-site": "same-site", origin: BASE }, "cross_origin"],
  [{ ...OWN, "sec-fetch-site": "cross-site", origin: BASE }, "cross_origin"],
  [{ ...OWN, origin: `${BASE}.evil.test`, host: "10.0.0.1" }, "cross_origin"],
  [{ ...OWN, origin: "http://mail.example.com", host: "10.0.0.1" }, "cross_origin"],
  [{ ...OWN, origin: "null", host: "null" }, "cross_origin"],
  [{ ...OWN, referer: `${BASE}/`, host: "mail.example.com" }, "cross_origin"],
  [{ ...OWN }, "cross_origin"],
])("a page that sends %j: %p", (headers, expected) => {
  expect(isTaken(() => requireOwnPage(asking(headers), BASE))).toBe(expected)
})

test("where the public address is not known, the name of the request counts", () => {
  const headers = { ...OWN, origin: "http://127.0.0.1:8080", host: "127.0.0.1:8080" }
  expect(isTaken(() => requireOwnPage(asking(headers), ""))).toBe(true)
})
