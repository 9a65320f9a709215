import { expect, test } from "bun:test"
import { LONGEST_RECORD } from "../../cli/lib/csv"
import { objectsIn } from "../../cli/lib/json-texts"

async function read(text: string, length: number) {
  async function* pieces() {
    for (let at = 0; at < text.length; at += length) yield text.slice(at, at + length)
  }
  return await Array.fromAsync(objectsIn(pieces()))
}

test.each<[string, object[]]>([
  ['[{"a":1},\n{"a":2}]', [{ a: 1 }, { a: 2 }]],
  ['{"a":1}\n{"a":{"data":[{"b":2}]}}', [{ a: 1 }, { a: { data: [{ b: 2 }] } }]],
  ['{"object":"list","data":[{"a":"}]\\""}],"more":[{"b":1}]}', [{ a: '}]"' }]],
  ['{"data":{"results":[{"a":1,"lists":[{"data":[{}]}]}]}}', [{ a: 1, lists: [{ data: [{}] }] }]],
  ['{"items":[{"a":1}],"paging":{}}{"items":[{"a":2}]}', [{ a: 1 }, { a: 2 }]],
  ['["a@x.test","b@x.test"]', [{ email: "a@x.test" }, { email: "b@x.test" }]],
  ['[[{"a":1}]]', []],
  ['{"data":[]}', []],
  ["", []],
])("the objects of %s", async (text, objects) => {
  for (const length of [1, 3, 1000])
    expect((await read(text, length)).map((one) => JSON.parse(one.text))).toEqual(objects)
})

test("each object has its line, and one that is too long is cut", async () => {
  const long = `{"a":"${"x".repeat(2 * LONGEST_RECORD)}"}`
  const found = await read(`[\n${long},\n\n{}]`, 1000)
  expect(found.map(({ line, text }) => [line, text.length])).toEqual([
    [2, LONGEST_RECORD + 1],
    [4, 2],
  ])
})

test.each(['[{"a":1}', '{"data":[{"a":1}]', '[{"a":"'])(
  "a text that ends early: %s",
  async (text) => {
    await expect(read(text, 5)).rejects.toThrow("ends in line 1, before its last object is closed")
  },
)
