import { expect, test } from "bun:test"
import type { AuthEnvironment } from "../../src/auth/environments"
import { readOrigins, readRedirects, requireRedirect } from "../../src/auth/redirects"
import { type ApiError, Problems } from "../../src/core/errors"

const LISTED = "https://shop.example.com/signed-in"

const environment = {
  application: { redirect_urls: [LISTED, "http://127.0.0.1:3000/in"] },
  settings: { redirect_urls: null },
} as unknown as AuthEnvironment

/** What people and attackers write in the place of the listed one. */
const ODD = [
  "",
  " ",
  "/signed-in",
  "//shop.example.com/signed-in",
  "shop.example.com/signed-in",
  "http://shop.example.com/signed-in",
  "HTTPS://shop.example.com/signed-in",
  "https://SHOP.example.com/signed-in",
  "https://shop.example.com:443/signed-in",
  "https://shop.example.com./signed-in",
  "https://shop.example.com/signed-in/",
  "https://shop.example.com/Signed-in",
  "https://shop.example.com//signed-in",
  "https://shop.example.com/./signed-in",
  "https://shop.example.com/x/../signed-in",
  "https://shop.example.com/signed%2Din",
  "https://shop.example.com/signed-in?",
  "https://shop.example.com/signed-in?next=https://evil.example",
  "https://shop.example.com/signed-in#",
  "https://shop.example.com/signed-in#evil",
  "https://shop.example.com/signed-in%00",
  "https://shop.example.com/signed-in%0d%0aset-cookie:a",
  `${LISTED}\r\nx: y`,
  `${LISTED} `,
  ` ${LISTED}`,
  `${LISTED}\t`,
  `${LISTED}\u0000`,
  `${LISTED}\u200b`,
  "https://shop.example.com",
  "https://shop.example.com@evil.example/signed-in",
  "https://user:pass@shop.example.com/signed-in",
  "https://shop.example.com.evil.example/signed-in",
  "https://evil.example/https://shop.example.com/signed-in",
  "https://sub.shop.example.com/signed-in",
  "https://shop.example.com\\@evil.example/signed-in",
  "https:\\\\shop.example.com\\signed-in",
  "https:/shop.example.com/signed-in",
  "https:shop.example.com/signed-in",
  "https://sh\u043ep.example.com/signed-in",
  "https://shop\u3002example.com/signed-in",
  "https://*.example.com/signed-in",
  "javascript:alert(1)//https://shop.example.com/signed-in",
  "data:text/html,<script>1</script>",
  "http://127.0.0.1:3001/in",
  "http://localhost:3000/in",
  "http://0x7f000001:3000/in",
]

test("46 odd forms of a listed redirect are none", () => {
  expect(ODD).toHaveLength(46)
  for (const url of ODD) {
    let code: string | undefined
    try {
      requireRedirect(environment, url)
    } catch (error) {
      code = (error as ApiError).code
    }
    expect([url, code]).toEqual([url, "invalid_url"])
  }
  requireRedirect(environment, LISTED)
  const own = { ...environment, settings: { redirect_urls: ["https://other.example/"] } }
  requireRedirect(own as AuthEnvironment, "https://other.example/")
  expect(() => requireRedirect(own as AuthEnvironment, LISTED)).toThrow("does not list")
})

const listable = (text: string, type: "web" | "native" = "web", read = readRedirects) => {
  const problems = new Problems()
  read([text], "it", problems, type)
  return problems.list.every(({ code }) => code === "invalid_url") && !problems.any
}

test("only what is exact and safe can be listed", () => {
  for (const url of [
    LISTED,
    "https://shop.example.com",
    "https://shop.example.com/",
    "https://shop.example.com:8443/in?a=b&c=%20",
    "https://xn--bcher-kva.example/in",
    "http://localhost/in",
    "http://127.0.0.1:3000/in",
    "http://[::1]:3000/in",
  ])
    expect([url, listable(url)]).toEqual([url, true])
  const safe = new Set([LISTED, "http://127.0.0.1:3001/in", "http://localhost:3000/in"])
  const exact = new Set(
    ODD.filter((url) => !safe.has(url)).filter((url) => listable(url) && /[#*@\\]/.test(url)),
  )
  expect([...exact]).toEqual([])
  for (const url of [
    "http://shop.example.com/in",
    "http://localhost.evil.example/in",
    "http://127.0.0.1.evil.example/in",
    "http://2130706433/in",
    "https://user@shop.example.com/in",
    "https://@shop.example.com/in",
    "https://shop.example.com/in#x",
    "https://*.example.com/in",
    "https://bücher.example/in",
    "https://shop.example.com/a b",
    "https://shop.example.com/<x>",
    "com.example.shop:/in",
    `https://shop.example.com/${"x".repeat(2048)}`,
  ])
    expect([url, listable(url)]).toEqual([url, false])
})

test("applications on a device have schemes of their own, but none that means something else", () => {
  for (const url of ["com.example.shop:/in", "shop://signed-in", "shop://signed-in/a?b=c"])
    expect([url, listable(url, "native")]).toEqual([url, true])
  for (const url of [
    ...["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "intent://x", "blob:x"],
    ...["mailto:a@b.example", "ws://x.example/", "view-source:https://x.example", "x:/in"],
  ])
    expect([url, listable(url, "native")]).toEqual([url, false])
})

test("an origin is a scheme and a host as browsers send them", () => {
  const isOrigin = (text: string, type: "web" | "native" = "web") =>
    listable(text, type, readOrigins)
  for (const origin of ["https://shop.example.com", "https://shop.example.com:8443"])
    expect([origin, isOrigin(origin)]).toEqual([origin, true])
  expect(isOrigin("http://localhost:3000")).toBe(true)
  expect(isOrigin("capacitor://localhost", "native")).toBe(true)
  for (const origin of [
    ...["null", "*", "https://*.example.com", "https://shop.example.com/", "shop.example.com"],
    ...["https://SHOP.example.com", "https://shop.example.com:443", "http://shop.example.com"],
    ...["https://a@shop.example.com", "https://shop.example.com/in", "capacitor://localhost"],
  ])
    expect([origin, isOrigin(origin)]).toEqual([origin, false])
})
