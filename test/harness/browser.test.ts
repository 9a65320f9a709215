import { afterAll, describe, expect, test } from "bun:test"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type PageLookOptions, startBrowser, type TestBrowser } from "./browser"
import { missing } from "./peers"
import { openPictures } from "./pictures"

const without = missing("chromium-headless-shell")
const chromium: TestBrowser | undefined = without ? undefined : await startBrowser()
afterAll(() => chromium?.[Symbol.asyncDispose]())

const started = () => {
  if (!chromium) throw new Error("there is no browser")
  return chromium
}

const pageOf = (body: string) =>
  `data:text/html,${encodeURIComponent(`<!doctype html><title>Page</title><meta name=viewport content="width=device-width"><style>body{font:15px/1.5 sans-serif;margin:16px}div{padding:4px}</style>${body}`)}`

const look = (body: string, options: PageLookOptions = {}) =>
  started().visit(pageOf(body), options, (page) => page.layoutFaults())

describe.skipIf(without)("the finder of layout faults", () => {
  test("finds nothing wrong with a page that is in order", async () => {
    const fine = `<h1>Title</h1><p>Some <a href="#a">link</a> and <a href="#b">another</a>.</p>
<form style="display:grid;gap:8px"><label for=a>Name</label><input id=a><button>Save</button></form>
<div style="display:flex;gap:8px;align-items:baseline"><b style="font-size:22px">Big</b><span>small</span></div>
<div style="display:flex;gap:8px;align-items:center"><button>One</button><button style="padding:12px">Two</button></div>
<div style="overflow:auto;width:100px" tabindex=0><pre>a long line of code that scrolls</pre></div>
<div style="overflow:hidden;text-overflow:ellipsis;white-space:nowrap;width:60px">cut with a sign</div>`
    for (const screen of ["phone", "desktop", "zoom"] as const)
      expect(await look(fine, { screen })).toEqual([])
  })

  const wrong: [string, string, string][] = [
    [
      "a page that scrolls sideways",
      "<div style='width:2000px'>wide</div>",
      "the page scrolls sideways",
    ],
    [
      "an element outside of the window",
      "<p style='margin-left:-40px'>Text</p>",
      "reaches out of the window: p",
    ],
    [
      "a long word that spills",
      "<div style='width:80px'>Donaudampfschifffahrtsgesellschaft</div>",
      "spills sideways",
    ],
    [
      "text that is cut off",
      "<div style='width:80px;overflow:hidden;white-space:nowrap'>cut off in the middle</div>",
      "is cut off sideways",
    ],
    [
      "text that is cut off below",
      "<div style='height:30px;overflow:hidden'>one<br>two<br>three</div>",
      "is cut off below",
    ],
    [
      "buttons on top of each other",
      "<button>First</button><button style='margin-left:-30px'>Second</button>",
      "overlap",
    ],
    [
      "text over text",
      "<p>The first line</p><p style='margin-top:-36px'>The second line</p>",
      "text over text",
    ],
    [
      "a button that something covers",
      "<button>Press</button><div style='position:absolute;inset:0'>over all</div>",
      "is covered by div",
    ],
    [
      "a crooked row",
      "<div style='display:flex;align-items:start'><span>One</span><span style='margin-top:2px'>Two</span></div>",
      "a crooked row",
    ],
    [
      "a crooked column",
      "<p style='width:200px'>One</p><p style='margin-left:2px;width:250px'>Two</p>",
      "a crooked column",
    ],
    [
      "a short word that breaks",
      "<div style='width:60px;overflow-wrap:anywhere'>exhausted</div>",
      '"exhausted" breaks',
    ],
    [
      "a button that touches text",
      "<p style='margin:0'>A line</p><button style='display:block'>Press</button>",
      "stands too close",
    ],
    [
      "edges that nearly meet",
      "<header>Brand</header><main style='max-width:850px;margin:0 3px'><h1>Title</h1></main>",
      '"Brand" begins at 16 px',
    ],
    [
      "a broken picture",
      "<img src='data:image/png;base64,AAAA' width=40 height=40 alt=x>",
      "a broken picture",
    ],
  ]
  test.each(wrong)("finds %s", async (_, body, fault) => {
    expect((await look(body)).join("\n")).toContain(fault)
  })

  test("looks at the open dialog and not at the page behind it", async () => {
    const body = `<div style='width:80px'>Donaudampfschifffahrtsgesellschaft</div>
<dialog><p>In order</p></dialog><button onclick="document.querySelector('dialog').showModal()">Open</button>`
    await started().visit(pageOf(body), {}, async (page) => {
      await page.click("Open", "button")
      expect(await page.layoutFaults()).toEqual([])
    })
  })
})

describe.skipIf(without)("the pictures", () => {
  test("tell a page that looks otherwise, and not one with another id and time", async () => {
    const folder = mkdtempSync(join(tmpdir(), "belfry-pictures-"))
    const places = { kept: join(folder, "kept"), shown: join(folder, "shown") }
    const pictured = async (body: string, { name = "one", renew = false } = {}) => {
      const pictures = openPictures(started(), { ...places, renew })
      return started().visit(pageOf(body), {}, (page) => pictures.compare(name, page))
    }
    const body = (id: string, at: string) => `<h1>Mail</h1><p>${id} at ${at}</p>`
    const first = body("01900000-aaaa-7000-8000-000000000001", "12:34:56")
    expect(await pictured(first, { renew: true })).toBeUndefined()
    const INDEXED = 3 // ISO/IEC 15948, 11.2.1: the colour type stands behind the depth
    expect(readFileSync(join(places.kept, "one.png"))[25]).toBe(INDEXED)
    expect(await pictured(first, { name: "two" })).toContain("there is no picture of it")
    expect(await pictured(first)).toBeUndefined()
    expect(await pictured(body("01911111-bbbb-7000-8000-000000000002", "01:02:03"))).toBeUndefined()
    const other = `${first}<div style="width:100px;height:40px;background:#b3261e"></div>`
    expect(await pictured(other)).toMatch(/^one: 0\.[5-9]\d %/)
    expect(readdirSync(places.shown).sort()).toEqual([
      "one.difference.png",
      "one.kept.png",
      "one.now.png",
      "two.now.png",
    ])
    const [major] = started().version.split(".")
    writeFileSync(join(places.kept, "browser.txt"), `${major}.0.1.2\n`)
    expect(await pictured(other)).toStartWith("one: ")
    writeFileSync(join(places.kept, "browser.txt"), "Chrome/1.0\n")
    expect(await pictured(other)).toBeUndefined()
    rmSync(folder, { recursive: true })
  })
})

describe.skipIf(without)("a page", () => {
  test("has shown a text that is gone again", async () => {
    const flash = `<button onclick="const p = document.createElement('p');
p.textContent = 'Copied'; document.body.append(p); setTimeout(() => p.remove(), 1)">Copy</button>`
    await started().visit(pageOf(flash), {}, async (page) => {
      await page.showsAfter("Copied", () => page.click("Copy", "button"))
      await page.until("!document.body.innerText.includes('Copied')")
    })
  })
})

describe.skipIf(without)("a visit", () => {
  const noisy: [string, string, string][] = [
    ["a script fails", "<script>throw new Error('broken here')</script>", "broken here"],
    ["the console has an error", "<script>console.error('told so')</script>", "told so"],
    [
      "the policy blocks a script",
      "<meta http-equiv=content-security-policy content=\"script-src 'none'\"><script>1</script>",
      "Content Security Policy",
    ],
    [
      "a picture is from elsewhere",
      "<img src='http://elsewhere.test/x.png'>",
      "ERR_NAME_NOT_RESOLVED",
    ],
  ]
  test.each(noisy)("fails when %s, unless the test expects it", async (_, body, told) => {
    const visited = started().visit(pageOf(body), {}, async () => {})
    expect(await visited.then(() => "", String)).toContain(told)
    await started().visit(pageOf(body), { expected: [new RegExp(told)] }, async () => {})
  })

  test("shares nothing with the one before", async () => {
    await using site = Bun.serve({
      port: 0,
      fetch: ({ headers }) =>
        new Response(headers.get("cookie"), {
          headers: { "set-cookie": "a=1", "content-type": "text/html" },
        }),
    })
    const expected = [/404|favicon/]
    for (let visits = 0; visits < 2; visits++) {
      await started().visit(site.url.href, { expected }, async (page) => {
        expect(await page.read<string>("document.body.innerText")).toBe("")
        await page.goto(site.url.href)
        expect(await page.read<string>("document.body.innerText")).toBe("a=1")
      })
    }
  })

  test("has the screen, the colours and the movement that were asked for", async () => {
    const options = { screen: "zoom", dark: true, still: true } as const
    await started().visit(pageOf("<p>Hi</p>"), options, async (page) => {
      const matches = (query: string) => page.read<boolean>(`matchMedia("${query}").matches`)
      expect(await matches("(prefers-color-scheme: dark)")).toBe(true)
      expect(await matches("(prefers-reduced-motion: reduce)")).toBe(true)
      expect(await page.read<number[]>("[innerWidth, devicePixelRatio]")).toEqual([640, 2])
    })
  })
})
