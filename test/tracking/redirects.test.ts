import { expect, test } from "bun:test"
import { sharedService } from "../harness/shared-service"
import { FIREFOX, receive } from "./letters"

const service = await sharedService()

const letter = async () => {
  const project = await service.project()
  const html = '<a href="https://shop.test/path?a=1&amp;b=2">x</a>'
  const received = await receive(service, project, { html })
  const stats = async () => {
    await service.parts.hits.flush()
    return (await project.get(`/v1/emails/${received.id}/tracking`)).body.data
  }
  return { ...received, path: received.links[0] ?? "", stats }
}

/** What leads elsewhere is wrong, and so is a page that names the other place. */
async function requirePage(path: string, method = "GET") {
  const answer = await service.app.handle(
    new Request(`http://belfry.test${path}`, { method, headers: { "user-agent": FIREFOX } }),
  )
  const text = await answer.text()
  expect([path, answer.status]).toEqual([path, 404])
  expect(answer.headers.get("location")).toBeNull()
  expect(answer.headers.get("refresh")).toBeNull()
  const is_page = answer.headers.get("content-type")?.startsWith("text/html")
  if (is_page) expect(text).not.toContain("evil.test")
}

test("a link that was changed at any place is a page that is not there, and counts nothing", async () => {
  const { path, pixel = "", stats } = await letter()
  const start = "/t/c/".length
  for (let at = start; at < path.length; at++) {
    const other = path[at] === "A" ? "B" : "A"
    await requirePage(`${path.slice(0, at)}${other}${path.slice(at + 1)}`)
    const flipped = String.fromCharCode(path.charCodeAt(at) ^ 1)
    if (/[\w-]/.test(flipped))
      await requirePage(`${path.slice(0, at)}${flipped}${path.slice(at + 1)}`)
  }
  for (let at = start; at < pixel.length - ".gif".length; at++) {
    const other = pixel[at] === "A" ? "B" : "A"
    const changed = `${pixel.slice(0, at)}${other}${pixel.slice(at + 1)}`
    const { status } = await service.anybody.get(changed, { "user-agent": FIREFOX })
    expect(status).toBe(200)
  }
  expect(await stats()).toMatchObject({ opens: { total: 0 }, clicks: { total: 0 } })
})

const FORMS = [
  "https://evil.test",
  "https:%2F%2Fevil.test",
  "//evil.test",
  "///evil.test",
  "/\\evil.test",
  "\\\\evil.test",
  "%5C%5Cevil.test",
  "%2F%2Fevil.test",
  "%2f%2fevil.test",
  "evil.test",
  "@evil.test",
  "https:evil.test",
  "https:/evil.test",
  "http:///evil.test",
  "javascript:alert(1)",
  "data:text/html,evil.test",
  "%0d%0aLocation:%20https://evil.test",
  "x%0aLocation:https://evil.test",
  "?url=https://evil.test",
  "x?u=https://evil.test",
  "x?redirect=//evil.test",
  "x#https://evil.test",
  "x/https://evil.test",
  "x/..//evil.test",
  "..//evil.test",
  "%2e%2e//evil.test",
  "aHR0cHM6Ly9ldmlsLnRlc3Q",
  "aHR0cHM6Ly9ldmlsLnRlc3Q=",
  "aHR0cHM6Ly9ldmlsLnRlc3Q.x",
  "eyJ1cmwiOiJodHRwczovL2V2aWwudGVzdCJ9",
  "00000000-0000-7000-8000-000000000000",
  "https%253A%252F%252Fevil.test",
  "%E3%80%82evil.test",
  "evil%E3%80%82test",
  "%00https://evil.test",
  "%09//evil.test",
  "%20https://evil.test",
  ";https://evil.test",
  "https://shop.test@evil.test",
  "https://shop.test.evil.test",
]

test.each(FORMS)("/t/c/%s leads nowhere", async (form) => {
  await requirePage(`/t/c/${form}`)
})

test("behind a token that is right nothing else leads elsewhere", async () => {
  const { path } = await letter()
  for (const more of ["/https://evil.test", "%2Fevil", "%00", ".evil.test", "@evil.test", "="]) {
    await requirePage(path + more)
  }
  for (const more of ["?url=https://evil.test", "?//evil.test"]) {
    const { status, headers } = await service.anybody.get(path + more, { "user-agent": FIREFOX })
    expect([status, headers.get("location")]).toEqual([302, "https://shop.test/path?a=1&b=2"])
  }
})

test("a link holds no id that anybody could read", async () => {
  const { id, path, pixel = "" } = await letter()
  const digits = id.replaceAll("-", "")
  for (const token of [path.slice("/t/c/".length), pixel.slice("/t/o/".length, -".gif".length)]) {
    expect(Buffer.from(token, "base64url").toString("hex")).not.toContain(digits)
    expect(token).not.toContain(id)
  }
})

test("an address outside ASCII leads where a browser would go", async () => {
  const project = await service.project()
  const html = '<a href="https://shop.test/ä b?ü=✓">x</a>'
  const { links } = await receive(service, project, { html })
  const { headers } = await service.anybody.get(links[0] ?? "", { "user-agent": FIREFOX })
  expect(headers.get("location")).toBe("https://shop.test/%C3%A4%20b?%C3%BC=%E2%9C%93")
})
