import { expect, test } from "bun:test"
import { guideContent, renderMarkdown, sectionsOf } from "../../../src/pages/docs/markdown"

test("tags of a text are shown and not obeyed", () => {
  const hostile = [
    "<script>alert(1)</script>",
    "text <img src=x onerror=alert(1)> <b>bold</b>",
    "<iframe src=//evil.test></iframe>",
    "`<svg onload=alert(1)>`",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "| <script>a</script> | b |\n|---|---|\n| <style>x</style> | c |",
  ].join("\n\n")
  const { text } = renderMarkdown(hostile)
  expect(text).not.toMatch(/<(script|img|b|iframe|svg|style)\b/)
  expect(text).toContain("&lt;script&gt;")
})

test("links go to guides or to the web, and nowhere else", () => {
  const linked = (to: string) => /<a[^>]*>/.exec(renderMarkdown(`[x](${to})`).text)?.[0]
  expect(linked("webhooks.md")).toBe('<a href="/docs/guides/webhooks">')
  expect(linked("webhooks.md#list")).toBe('<a href="/docs/guides/webhooks#list">')
  expect(linked("https://example.com/?a=1&b=2")).toBe(
    '<a href="https://example.com/?a=1&amp;b=2" rel="noreferrer">',
  )
  expect(linked("#here")).toBe('<a href="#here">')
  for (const to of [
    "javascript:alert(1)",
    "data:text/html,x",
    "../src/app.ts",
    "//evil.test",
    "x.md",
  ]) {
    expect([to, linked(to)]).toEqual([to, "<a>"])
  }
})

test("a comment of a shell is no heading, and a heading has the id of the page", () => {
  const page = "# Title\n\nFirst.\n\n```sh\n# no heading\n```\n\n## One `thing` & more\n\nText.\n"
  const { title, sections } = sectionsOf(page)
  expect(title).toBe("Title")
  expect(sections.map(({ heading }) => heading)).toEqual(["", "One thing & more"])
  expect(renderMarkdown(page).text).toContain(`id="${sections[1]?.id}"`)
})

test("a long guide begins with its contents", () => {
  const page = "# Title\n\n## One\n\na\n\n## Two\n\nb\n\n## Three\n\nc\n"
  expect(guideContent(page).text).toMatch(/<\/h1>\s*<details[\s\S]*href="#two"[\s\S]*<h2 id="one"/)
  expect(guideContent("# Title\n\n## One\n\na\n").text).not.toContain("<details")
})
