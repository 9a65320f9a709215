import { expect, test } from "bun:test"
import { proxyFor } from "../../cli/lib/client"

const given = { HTTP_PROXY: "http://plain.test:3128", HTTPS_PROXY: "http://secure.test:3128" }

test.each<[string, Record<string, string>, string | undefined]>([
  ["ws://box.test/x", given, "http://plain.test:3128"],
  ["wss://box.test/x", given, "http://secure.test:3128"],
  ["wss://box.test/x", { https_proxy: "proxy.test:8080" }, "http://proxy.test:8080"],
  ["wss://box.test/x", { ALL_PROXY: "http://all.test" }, "http://all.test"],
  ["wss://box.test/x", { HTTP_PROXY: "http://plain.test" }, undefined],
  ["wss://box.test/x", {}, undefined],
  ["ws://127.0.0.1:8080/x", given, undefined],
  ["ws://localhost:8080/x", given, undefined],
  ["ws://[::1]:8080/x", given, undefined],
  ["wss://box.test/x", { ...given, NO_PROXY: "*" }, undefined],
  ["wss://box.test/x", { ...given, NO_PROXY: "other.test, box.test" }, undefined],
  ["wss://a.box.test/x", { ...given, no_proxy: ".box.test" }, undefined],
  ["wss://mybox.test/x", { ...given, NO_PROXY: "box.test" }, "http://secure.test:3128"],
  ["wss://box.test:8443/x", { ...given, NO_PROXY: "box.test:443" }, "http://secure.test:3128"],
  ["wss://box.test/x", { ...given, NO_PROXY: "box.test:443" }, undefined],
])("%s with %j goes through %s", (address, environment, proxy) => {
  expect(proxyFor(address, environment)).toBe(proxy)
})
