import { expect, test } from "bun:test"
import { readCookie, setCookie } from "../../src/lib/cookie"

const NAME = "__Host-belfry"

test("a cookie is for this host alone, and no script and no other site has it", () => {
  const cookie = setCookie({ name: NAME, value: "a_1-b", max_age: 60 })
  const [pair, ...attributes] = cookie.split("; ")
  expect(pair).toBe("__Host-belfry=a_1-b")
  const all = ["HttpOnly", "Max-Age=60", "Path=/", "SameSite=Strict", "Secure"]
  expect(attributes.toSorted()).toEqual(all) // no Domain: the prefix forbids it
})

test("its value is found wherever it stands", () => {
  for (const header of [
    "__Host-belfry=v",
    "a=b; __Host-belfry=v",
    "__Host-belfry=v;a=b",
    "\t__Host-belfry=v ",
  ]) {
    expect(readCookie(header, NAME)).toBe("v")
  }
  expect(readCookie("__Host-belfry=a=b", NAME)).toBe("a=b")
  expect(readCookie("__Host-belfry=", NAME)).toBe("")
})

test("a name that only looks like it, and two of them, are none", () => {
  const forged = [
    ...["belfry=v", "__host-belfry=v", "__Host-belfry2=v", "x__Host-belfry=v", "__Host-belfry", ""],
    ...[
      "\u00a0__Host-belfry=v",
      "\u0085__Host-belfry=v",
      "\u2000__Host-belfry=v",
      "\u000b__Host-belfry=v",
    ],
    ...[
      "__Host-belfry\u00a0=v",
      "$Version=1,__Host-belfry=v",
      '"__Host-belfry"=v',
      "__Host-belfry=v; __Host-belfry=w",
    ],
  ]
  for (const header of forged)
    expect([header, readCookie(header, NAME)]).toEqual([header, undefined])
  expect(readCookie(null, NAME)).toBeUndefined()
})
