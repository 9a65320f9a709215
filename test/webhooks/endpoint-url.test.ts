import { afterEach, describe, expect, test } from "bun:test"
import { listening } from "../../src/core/destination"
import { ApiError } from "../../src/core/errors"
import {
  assertForm,
  assertPublicUrl,
  type EndpointUrlRules,
} from "../../src/webhooks/endpoint-input"

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

const names = (...a: string[]) => ({ a: async () => a, aaaa: async () => [] as string[] })
const production: EndpointUrlRules = {
  require_https: true,
  allow_private: [],
  resolver: names("93.184.216.34"),
}
const laptop: EndpointUrlRules = {
  require_https: false,
  allow_private: ["127.0.0.0/8"],
  resolver: names("127.0.0.1"),
}

/** The reason, or undefined when the URL is taken. */
async function reasonOf(url: string, rules: EndpointUrlRules): Promise<string | undefined> {
  try {
    await assertPublicUrl(url, rules)
    return undefined
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    expect([error.code, error.status]).toEqual(["invalid_url", 422])
    const { field, reason } = error.details as { field: string; reason: string }
    expect(field).toBe("url")
    return reason
  }
}

test.each([
  "https://hooks.test/a?b=c",
  "https://hooks.test:443/",
  "https://hooks.test:8443/",
  "https://hooks.test:1024/",
  "https://hooks.test:65535/",
  "https://hooks.test./",
  "HTTPS://HOOKS.TEST/",
  "https://bücher.test/",
  "https://8.8.8.8/",
  "https://[2606:4700:4700::1111]/",
  "https://hooks.test/@path?user@host",
])("%s is taken", async (url) => expect(await reasonOf(url, production)).toBeUndefined())

test.each([
  ["", "malformed"],
  ["hooks.test", "malformed"],
  ["/path", "malformed"],
  ["ftp://hooks.test/", "malformed"],
  ["javascript:alert(1)", "malformed"],
  ["https://", "malformed"],
  ["https://hooks.test/a b", "malformed"],
  [" https://hooks.test/", "malformed"],
  ["https://hooks.test/\r\nX-Evil: 1", "malformed"],
  ["https://ho\toks.test/", "malformed"],
  ["https://hooks.test:70000/", "malformed"],
  [`https://hooks.test/${"a".repeat(2048)}`, "malformed"],
  ["http://hooks.test/", "https_required"],
  ["https://user@hooks.test/", "userinfo"],
  ["https://user:pass@hooks.test/", "userinfo"],
  ["https://:pass@hooks.test/", "userinfo"],
  ["https://@hooks.test/", "userinfo"],
  ["https:\\\\@hooks.test/", "userinfo"],
  ["https:user@hooks.test/", "userinfo"],
  ["https://hooks.test@127.0.0.1/", "userinfo"],
  ["https://hooks.test:22/", "port"],
  ["https://hooks.test:80/", "port"],
  ["https://hooks.test:0/", "port"],
  ["https://hooks.test:1023/", "port"],
  ["https://127.0.0.1/", "blocked_address"],
  ["https://2130706433/", "blocked_address"],
  ["https://0x7f.1/", "blocked_address"],
  ["https://①②⑦.⓪.⓪.①/", "blocked_address"],
  ["https://[::ffff:10.0.0.1]/", "blocked_address"],
  ["https://[64:ff9b::a9fe:a9fe]/", "blocked_address"],
  ["https://169.254.169.254/", "blocked_address"],
  ["https://localhost/", "blocked_address"],
])("%j is refused: %s", async (url, reason) => {
  expect(await reasonOf(url, production)).toBe(reason)
})

describe("names", () => {
  test("of which one address is private are refused", async () => {
    const resolver = names("93.184.216.34", "10.0.0.1")
    expect(await reasonOf("https://mixed.test/", { ...production, resolver })).toBe(
      "blocked_address",
    )
  })

  test("that nobody can resolve now are taken, since each attempt judges them again", async () => {
    const broken = () => Promise.reject(new Error("SERVFAIL"))
    for (const resolver of [names(), { a: broken, aaaa: broken }]) {
      expect(await reasonOf("https://later.test/", { ...production, resolver })).toBeUndefined()
    }
  })
})

describe("where the operator allows http and private addresses", () => {
  test.each(["http://127.0.0.1:3000/", "http://localhost:3000/", "http://hooks.test:8080/"])(
    "%s is taken",
    async (url) => expect(await reasonOf(url, laptop)).toBeUndefined(),
  )

  test.each([
    ["http://10.0.0.1:3000/", "blocked_address"],
    ["http://127.0.0.1/", "port"],
    ["http://user@127.0.0.1:3000/", "userinfo"],
  ])("%s is refused all the same: %s", async (url, reason) => {
    expect(await reasonOf(url, laptop)).toBe(reason)
  })

  test("our own listeners are refused all the same", async () => {
    closing.push(listening("127.0.0.1", 4321))
    for (const host of ["127.0.0.1", "localhost", "hooks.test", "[::ffff:127.0.0.1]"]) {
      expect(await reasonOf(`http://${host}:4321/`, laptop)).toBe("blocked_address")
    }
    expect(await reasonOf("http://127.0.0.1:4322/", laptop)).toBeUndefined()
  })
})

test("the form alone is judged without asking for the name", () => {
  expect(() => assertForm("https://127.0.0.1/", { require_https: true })).not.toThrow()
  expect(() => assertForm("http://hooks.test/", { require_https: true })).toThrow("https://")
})
