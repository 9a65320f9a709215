import { describe, expect, test } from "bun:test"
import fc from "fast-check"
import { canonicalJson, parseJson } from "../../src/http/json"

const parse = (text: string) => parseJson(Buffer.from(text))
const reasonOf = (text: string | Uint8Array) => {
  try {
    parseJson(typeof text === "string" ? Buffer.from(text) : text)
  } catch (error) {
    const { code, status, details } = error as { code: string; status: number; details: object }
    return { code, status, ...details }
  }
  return undefined
}
const refused = (reason: string) => ({ code: "invalid_json", status: 400, reason })

describe("JSON is read as it is written", () => {
  test("for every value that can be written", () => {
    const hasProto = (value: unknown) => JSON.stringify(value).includes("__proto__")
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        fc.pre(!hasProto(value))
        const text = JSON.stringify(value, null, 2)
        expect(parse(text)).toEqual(JSON.parse(text))
      }),
      { seed: 2, numRuns: 500 },
    )
  })

  test.each([
    '{"a":{"a":1},"b":{"a":2}}',
    '[{"a":1},{"a":2}]',
    '{"a":"\\"b\\":1,\\"b\\":2"}',
    '{"a\\\\":1,"a":2}',
    '{"a":"__proto__"}',
    '{"constructor":1,"toString":2,"":3}',
    " [ ] ",
    '"text"',
    "null",
  ])("%s is fine", (text) => {
    expect(parse(text)).toEqual(JSON.parse(text))
  })
})

describe("JSON is refused", () => {
  test.each(["", "{", "{'a':1}", '{"a":1,}', "[1,]", "NaN", '{"a":1}x', '"\n"', "01"])(
    "that is malformed: %j",
    (text) => {
      expect(reasonOf(text)).toEqual(refused("syntax"))
    },
  )

  test("that is not UTF-8", () => {
    expect(reasonOf(new Uint8Array([0x22, 0xff, 0x22]))).toEqual(refused("encoding"))
    expect(reasonOf(new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]))).toEqual(refused("encoding"))
  })

  test.each([
    '{"a":1,"a":1}',
    '{"a":1,"b":{"c":[{"d":1 , "d" :2}]}}',
    '{"a":1,"\\u0061":2}',
    '{"a\\"":1,"a\\"":2}',
    '{"":1,"":2}',
  ])("with a key that stands twice: %s", (text) => {
    expect(reasonOf(text)).toEqual(refused("duplicate_key"))
  })

  test("with a key that stands twice among very many", () => {
    const keys = Array.from({ length: 9_000 }, (_, at) => `"k${at}":${at}`)
    expect(parse(`{${keys}}`)).toHaveProperty("k8999", 8_999)
    expect(reasonOf(`{${keys},"k7":0}`)).toEqual(refused("duplicate_key"))
  })

  test.each(['{"__proto__":{}}', '{"a":[{"__proto__":1}]}', '{"\\u005f_proto__":1}'])(
    "with %s",
    (text) => {
      expect(reasonOf(text)).toEqual(refused("proto"))
    },
  )

  test("deeper than 64", () => {
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth)
    expect(reasonOf(nested(64))).toBeUndefined()
    expect(reasonOf(nested(65))).toEqual(refused("depth"))
    expect(reasonOf(`${'{"a":'.repeat(65)}1${"}".repeat(65)}`)).toEqual(refused("depth"))
  })

  test("with more than 10,000 keys", () => {
    const objects = (count: number) => `[${Array(count).fill('{"a":1}')}]`
    expect(reasonOf(objects(10_000))).toBeUndefined()
    expect(reasonOf(objects(10_001))).toEqual(refused("keys"))
  })
})

test("the canonical form does not depend on the order of keys", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const again = JSON.parse(canonicalJson(value))
      expect(again).toEqual(JSON.parse(JSON.stringify(value)))
      expect(canonicalJson(again)).toBe(canonicalJson(value))
    }),
    { seed: 2, numRuns: 300 },
  )
  expect(canonicalJson({ b: [1, { d: 1, c: 2 }], a: null })).toBe(
    '{"a":null,"b":[1,{"c":2,"d":1}]}',
  )
})
