import { describe, expect, test } from "bun:test"
import { canonicalJson, hashOf, JsonScan, parseBody, parseScanned } from "../../src/http/json"
import fc from "../harness/properties"

function parseJson(bytes: Uint8Array): unknown {
  new JsonScan().feed(bytes)
  return parseScanned([bytes])
}

const parse = (text: string) => parseJson(Buffer.from(text))
const caught = (run: () => unknown): object | undefined => {
  try {
    run()
  } catch (error) {
    const { code, status, details } = error as { code: string; status: number; details: object }
    return { code, status, ...details }
  }
  return undefined
}
const reasonOf = (text: string | Uint8Array) =>
  caught(() => parseJson(typeof text === "string" ? Buffer.from(text) : text))
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
    '{"é":1,"\\u00e9":2}',
    '{"\\ud83d\\ude00":1,"😀":2}',
    '{"\\ud800":1,"\\uD800":2}',
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

  test("more than 64 nested", () => {
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

describe("JSON of very many values is refused", () => {
  /** Texts of exactly so many values, the outermost list among them. */
  const written: [string, (count: number) => string][] = [
    ["lists", (count) => `[${Array(count - 1).fill("[]")}]`],
    ["objects", (count) => `[${Array(count - 1).fill("{ }")}]`],
    ["numbers", (count) => `[${Array(count - 1).fill("-1.5e3")}]`],
    ["texts", (count) => `[${Array(count - 1).fill('"[1,2],"')}]`],
    [
      "words",
      (count) =>
        `[ ${Array(count - 1)
          .fill("true")
          .join(" ,\n")} ]`,
    ],
    ["fields of one object", (count) => `{"a":[${Array(count - 2).fill("null")}]}`],
  ]

  test.each(written)("be they %s", (_, textOf) => {
    expect(reasonOf(textOf(100_000))).toBeUndefined()
    expect(reasonOf(textOf(100_001))).toEqual(refused("too_many_values"))
  })

  test("but for the numbers of lists, where those are files", () => {
    const feed = (text: string) => {
      const scan = new JsonScan({ lists_are_files: true })
      for (const part of text.match(/.{1,1000}/gs) ?? []) scan.feed(Buffer.from(part))
      return scan
    }
    expect(feed(`{"a":[{"content":[${Array(300_000).fill("255")}]}]}`).is_heavy).toBe(true)
    expect(feed(`[${Array(100_000).fill("1")}]`).is_heavy).toBe(false)
    for (const value of ["[]", "{}", '""', '{"a":1}']) {
      const many = `[${Array(100_001).fill(value)}]`
      expect(caught(() => feed(many))).toMatchObject({ code: "invalid_json" })
    }
  })

  test("though it is not JSON", () => {
    expect(reasonOf("[[],".repeat(60) + "[],".repeat(100_000))).toEqual(refused("too_many_values"))
  })

  test("before the rest of it has come", () => {
    const scan = new JsonScan()
    const part = Buffer.from("[],".repeat(10_000))
    scan.feed(Buffer.from("["))
    for (let at = 0; at < 9; at++) scan.feed(part)
    expect(caught(() => scan.feed(part))).toEqual(refused("too_many_values"))
  })
})

describe("JSON in parts is judged as the whole is", () => {
  const inParts = (bytes: Uint8Array, sizes: number[]) => {
    const scan = new JsonScan()
    let at = 0
    for (let turn = 0; at < bytes.length; turn++) {
      const size = sizes[turn % sizes.length] ?? 1
      scan.feed(bytes.subarray(at, at + size))
      at += size
    }
  }
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 })
  const key = fc.oneof(
    fc.constantFrom("a", "\\", '"', "é", "😀", "__proto", "\ud800", "\n", "[]{},:"),
    fc.string(),
  )
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.oneof(fc.constantFrom(1, true, null, -1.5), key),
      fc.array(tie("node"), { maxLength: 4 }),
      fc.dictionary(key, tie("node"), { maxKeys: 4, noNullPrototype: true }),
    ),
  })).node

  test("where it is good", () => {
    fc.assert(
      fc.property(tree, sizes, (value, cuts) => {
        const text = JSON.stringify(value, null, 1)
        fc.pre(!text.includes('"__proto__"'))
        expect(caught(() => inParts(Buffer.from(text), cuts))).toBeUndefined()
      }),
      { seed: 11, numRuns: 1000 },
    )
  })

  test("where a key stands twice", () => {
    fc.assert(
      fc.property(key, tree, sizes, fc.boolean(), (name, value, cuts, escaped) => {
        fc.pre(name !== "__proto__")
        const units = [...Array(name.length).keys()].map((at) => name.charCodeAt(at))
        const other = units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("")
        const again = escaped ? `"${other}"` : JSON.stringify(name)
        const text = `[{${JSON.stringify(name)}:${JSON.stringify(value)},${again}:1}]`
        fc.pre(!text.includes('"__proto__"'))
        expect(caught(() => inParts(Buffer.from(text), cuts))).toEqual(refused("duplicate_key"))
      }),
      { seed: 12, numRuns: 1000 },
    )
  })

  test.each([
    ['{"__pro\\u0074o__":1}', "proto"],
    [`${"[".repeat(65)}`, "depth"],
    [`[${Array(10_001).fill('{"a":1}')}]`, "keys"],
    [`[${Array(100_000).fill("1")}]`, "too_many_values"],
  ])("where it passes a limit: %.30s", (text, reason) => {
    for (const size of [1, 2, 3, 7, 1000]) {
      expect(caught(() => inParts(Buffer.from(text), [size]))).toEqual(refused(reason))
    }
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

test.each([2, 5, 16, 17, 40])(
  "the canonical form has %d keys in the order of their code units",
  (count) => {
    const keys = Array.from(
      { length: count },
      (_, at) => `${"zaZäé😀\uffff"[(at * 5) % 7]}${(at * 7) % 11}_${at}`,
    )
    const value = Object.fromEntries(keys.map((key) => [key, 1]))
    expect(Object.keys(JSON.parse(canonicalJson(value)))).toEqual(keys.toSorted())
  },
)

describe("a large body, parsed in a thread,", () => {
  const parsed = (value: unknown) =>
    parseBody({ parts: [Buffer.from(JSON.stringify(value))], hashed: true })
  const base64 = Buffer.alloc(60_000, "file").toString("base64")

  test("has its long files decoded, in one mail and in many, and the hash of what was sent", () => {
    const mail = { attachments: [{ content: base64 }, { content: "Zg==" }, null], text: base64 }
    const decoded = {
      ...mail,
      attachments: [{ content: Buffer.from(base64, "base64") }, ...mail.attachments.slice(1)],
    }
    for (const value of [mail, [mail, 5], { messages: [null, mail] }]) {
      const { value: found, hash } = parsed(value)
      expect(hash).toBe(hashOf(value))
      expect(found).toEqual(
        JSON.parse(JSON.stringify(value), (_, one) => (one?.attachments ? decoded : one)),
      )
    }
  })

  test("keeps what is no strict base64, for its reader to refuse", () => {
    const mail = { attachments: [{ content: `${base64}\n` }, { content: [base64] }], messages: 5 }
    expect(parsed(mail).value).toEqual(mail)
  })
})
