import { describe, expect, test } from "bun:test"
import fc from "../harness/properties"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"

const service = await sharedService()
const PATH = "/v1/suppressions"

const VALUES: unknown[] = [
  null,
  true,
  0,
  [],
  {},
  "",
  "\0",
  "a@x.test\0",
  "\ud800@x.test",
  "a@\ud800.test",
  "a@x.test\n",
  "<a@x.test>",
  "a@x.test, b@x.test",
  "' OR 1=1 --@x.test",
  "a@x.test'; DROP TABLE suppressions; --",
  `${"a".repeat(64)}@${"b".repeat(63)}.test`,
  `${"a".repeat(65)}@x.test`,
  "x".repeat(100_000),
  "%@x.test",
  "_@x.test",
  "*@x.test",
  "ä@bücher.test",
  "\u202ea@x.test",
  "+4915112345678",
  "=1+1@x.test",
]

describe("whatever is sent,", () => {
  test("nothing is a fault of the server, and one item spoils no other", async () => {
    const project = await service.project()
    const items = VALUES.flatMap((value) => [
      { email: value },
      { email: "ok@x.test", reason: value },
      { email: "ok@x.test", note: value },
      value,
    ])
    const emails = [...items, { email: "last@x.test" }]
    const { status, body } = await project.post(`${PATH}/bulk`, { emails })
    expect(status).toBe(200)
    const { added, existing, failed } = body.data
    expect(added + existing + failed.length).toBe(emails.length)
    const indexes = failed.map(({ index }: { index: number }) => index)
    expect(new Set(indexes).size).toBe(indexes.length)
    expect(indexes).not.toContain(emails.length - 1)
    expect((await project.get(`${PATH}/check?email=last@x.test`)).body.data.suppressed).toBe(true)
    for (const value of VALUES) {
      const single = await project.post(PATH, { email: value })
      expect([201, 409, 422]).toContain(single.status)
      const removal = await project.post(`${PATH}/bulk-remove`, { emails: [value] })
      expect([200, 422]).toContain(removal.status)
    }
  })

  test("a query finds what it names and no more", async () => {
    const project = await service.project()
    for (const email of ["a_b@x.test", "acb@x.test", "a%b@x.test"]) {
      expect((await project.post(PATH, { email })).status).toBe(201)
    }
    const ask = async (address: string) =>
      (await project.get(`${PATH}?address=${encodeURIComponent(address)}`)).body.data
    expect(await ask("a_b@x.test")).toHaveLength(1)
    expect(await ask("a%b@x.test")).toHaveLength(1)
    expect(await ask("%")).toEqual([])
    expect(await ask("' OR 1=1 --")).toEqual([])
    for (const query of [
      "email=%00",
      "phone=%2B49%00",
      "email=a",
      "email=a@x.test&phone=%2B4915112345678",
    ]) {
      expect((await project.get(`${PATH}/check?${query}`)).status).toBe(422)
    }
    expect((await project.get(`${PATH}?address=%00`)).status).toBe(422)
    for (const path of ["check/x", "%00", "00000000-0000-0000-0000-000000000000"]) {
      expect((await project.get(`${PATH}/${path}`)).status).toBe(404)
    }
  })

  test("bodies that are no list are refused", async () => {
    const project = await service.project()
    const bodies = [{}, { emails: null }, { emails: "a@x.test" }, { emails: { 0: "a@x.test" } }, []]
    for (const body of bodies) {
      for (const route of ["bulk", "bulk-remove"]) {
        expect((await project.post(`${PATH}/${route}`, body)).status).toBe(422)
      }
    }
    const proto = '{"emails":[{"email":"a@x.test","__proto__":{"reason":"bounce"}}]}'
    const refused = await project.call("POST", `${PATH}/bulk`, { body: proto })
    expect(refused.status).toBe(400)
  })

  test("an address in any spelling is one address, from adding to refusing to removing", async () => {
    const project = await service.project()
    const local = fc.string({
      unit: fc.constantFrom(..."abzAZ09.!#$%&'*+/=?^_`{|}~-äÖß"),
      minLength: 1,
      maxLength: 20,
    })
    const domain = fc.constantFrom("x.test", "X.TEST", "bücher.test", "xn--bcher-kva.test")
    const tries = Math.min(100, sizes.fuzz)
    await fc.assert(
      fc.asyncProperty(local, domain, async (name, at) => {
        const email = `${name}@${at}`
        const { status } = await project.post(PATH, { email })
        expect([201, 409, 422]).toContain(status)
        if (status === 422) return
        const other = `${name.toUpperCase()}@${at.toUpperCase()}`
        const asked = await project.get(`${PATH}/check?email=${encodeURIComponent(email)}`)
        expect(asked.body.data.suppressed).toBe(true)
        // Upper case of some letters is another letter: ß has none of its own.
        if (!name.includes("ß")) {
          const again = await project.get(`${PATH}/check?email=${encodeURIComponent(other)}`)
          expect([other, again.body.data.suppressed]).toEqual([other, true])
        }
        const removed = await project.post(`${PATH}/bulk-remove`, { emails: [email] })
        expect(removed.body.data).toEqual({ removed: 1, not_found: [] })
      }),
      { numRuns: tries },
    )
  })
})
