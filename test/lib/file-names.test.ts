import { describe, expect, test } from "bun:test"
import { asDownload, safeFilename } from "../../src/lib/file-names"

describe("a stranger's file name", () => {
  test.each<[string | null, string]>([
    ["invoice.pdf", "invoice.pdf"],
    ["Grüße 2026.pdf", "Grüße 2026.pdf"],
    ["請求書.pdf", "請求書.pdf"],
    ["../../etc/passwd", "passwd"],
    ["..\\..\\windows\\system.ini", "system.ini"],
    ["/etc/shadow", "shadow"],
    ["C:\\evil.exe", "evil.exe"],
    ["..", "attachment"],
    [".", "attachment"],
    [".bashrc", "bashrc"],
    ["a/", "attachment"],
    ["", "attachment"],
    [null, "attachment"],
    ["   ", "attachment"],
    ['a"b.txt', "a_b.txt"],
    ["a\r\nSet-Cookie: x.txt", "a__Set-Cookie_ x.txt"],
    ["a\0b.txt", "a_b.txt"],
    ["invoice\u202efdp.exe", "invoice_fdp.exe"],
    ["in\u200bvoice.pdf", "in_voice.pdf"],
    ["\ud800.txt", "\ufffd.txt"],
    ["CON", "CON"],
  ])("%j is saved as %j", (name, safe) => {
    expect(safeFilename(name)).toBe(safe)
  })

  test("of any length is shortened and keeps its ending", () => {
    const safe = safeFilename(`${"ü".repeat(5000)}.pdf`)
    expect(safe).toEndWith("ü.pdf")
    expect(Buffer.byteLength(safe)).toBeLessThanOrEqual(255)
    expect(Buffer.byteLength(safeFilename("x".repeat(5000)))).toBe(255)
  })
})

describe("the header of a download", () => {
  test.each<[string, string]>([
    ["a.txt", "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt"],
    [
      "it's (1)*.txt",
      "attachment; filename=\"it's (1)*.txt\"; filename*=UTF-8''it%27s%20%281%29%2A.txt",
    ],
    ["für.txt", "attachment; filename=\"f_r.txt\"; filename*=UTF-8''f%C3%BCr.txt"],
    [
      "50% off; now.txt",
      "attachment; filename=\"50_ off_ now.txt\"; filename*=UTF-8''50%25%20off%3B%20now.txt",
    ],
    ["請.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%E8%AB%8B.txt"],
  ])("for %j", (name, header) => {
    expect(asDownload(name)).toBe(header)
    new Headers({ "content-disposition": asDownload(name) }) // throws for what is no header value
  })
})
