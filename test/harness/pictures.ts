import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import type { BrowserPage, TestBrowser } from "./browser"
import { root } from "./migrations"
import { palettePng } from "./palette-png"
import { note } from "./peers"

/** The share of pixels that may differ. */
const TOLERANCE = 0.005
/** A pixel differs when one of its colours does by more, of 255: smoothing is no difference. */
const SAME_COLOUR = 24

export interface PictureOptions {
  /** Where the pictures are. */
  kept: string
  /** What differs is put there, with the picture that was expected, to be looked at. */
  shown: string
  /** Keep what the pages look like now. */
  renew: boolean
}

const OF_PAGES: PictureOptions = {
  kept: join(root, "test/fixtures/pictures"),
  shown: join(root, "dist/pictures"),
  renew: process.env.BELFRY_TEST_PICTURES === "renew",
}

/** Compares pages with the pictures kept of them, in a page of the browser itself. */
export interface Pictures {
  /** What differs, in one line; undefined where the page looks as it is to. */
  compare(name: string, page: BrowserPage): Promise<string | undefined>
}

/**
 * Pictures of another major version of the browser are not compared, and the summary of the run says so.
 */
export function openPictures(browser: TestBrowser, { kept, shown, renew } = OF_PAGES): Pictures {
  let opened: Promise<BrowserPage> | undefined
  const bench = () => {
    opened ??= browser.open("about:blank")
    return opened
  }
  mkdirSync(kept, { recursive: true })
  mkdirSync(shown, { recursive: true })
  const versions = join(kept, "browser.txt")
  if (renew) writeFileSync(versions, `${browser.version}\n`)
  const kept_version = existsSync(versions) ? readFileSync(versions, "utf8").trim() : "no browser"
  const is_comparable = majorOf(kept_version) === majorOf(browser.version)
  return {
    async compare(name, page) {
      await page.read(STEADY)
      const png = await page.screenshot()
      const path = join(kept, `${name}.png`)
      if (renew) return void writeFileSync(path, await small(await bench(), png))
      if (!is_comparable) {
        if (kept === OF_PAGES.kept)
          note(`pictures of pages: they are of ${kept_version}, and here is ${browser.version}`)
        return undefined
      }
      if (!existsSync(path))
        return show(join(shown, name), { now: png }, "there is no picture of it")
      return await judge(await bench(), join(shown, name), { kept: readFileSync(path), now: png })
    },
  }
}

/** Of `Chrome/142.0.7444.59`: `Chrome/142`. */
const majorOf = (version: string): string => version.split(".", 1)[0] ?? version

async function judge(
  bench: BrowserPage,
  path: string,
  pair: { kept: Uint8Array; now: Uint8Array },
) {
  const [share, difference] = await bench.read<[number, string]>(
    `(${compareInPage})(${JSON.stringify(dataUrl(pair.kept))}, ${JSON.stringify(dataUrl(pair.now))}, ${SAME_COLOUR})`,
  )
  if (share <= TOLERANCE) return undefined
  const pictures = { now: pair.now, kept: pair.kept, difference: bytesOf(difference) }
  return show(path, pictures, `${(100 * share).toFixed(2)} % of it differ`)
}

function show(path: string, pictures: Record<string, Uint8Array>, what: string): string {
  const paths = Object.entries(pictures).map(([kind, bytes]) => {
    writeFileSync(`${path}.${kind}.png`, bytes)
    return `${path}.${kind}.png`
  })
  const renew = "If that is how it is to look: BELFRY_TEST_PICTURES=renew, and the same test again."
  return `${basename(path)}: ${what}. Look at ${paths.join(", ")}. ${renew}`
}

const dataUrl = (bytes: Uint8Array) =>
  `data:image/png;base64,${Buffer.from(bytes).toString("base64")}`

const bytesOf = (url: string) => Buffer.from(url.slice(url.indexOf(",") + 1), "base64")

/** The same picture in fewer colours, where it has so few; a fifth of the size. */
async function small(bench: BrowserPage, png: Uint8Array): Promise<Uint8Array> {
  const url = JSON.stringify(dataUrl(png))
  for (const fine of FINE_COLOURS) {
    const [width, height, colours, pixels] = await bench.read<[number, number, string, string]>(
      `(${fewColours})(${url}, ${fine})`,
    )
    const palette = Buffer.from(colours, "base64")
    if (palette.length > 3 * 256) continue
    return palettePng({ width, height, palette, pixels: Buffer.from(pixels, "base64") })
  }
  return png
}

/** Colours that differ by less than this are one colour, where few enough are left: less than what is compared. */
const FINE_COLOURS = [8, 12, 16]

/** The size, the colours as base64, and as base64 the number of the colour of each pixel. */
const fewColours = `async (url, fine) => {
  const picture = new Image()
  picture.src = url
  await picture.decode()
  const canvas = document.createElement("canvas")
  canvas.width = picture.width
  canvas.height = picture.height
  const context = canvas.getContext("2d")
  context.drawImage(picture, 0, 0)
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height)
  const numbers = new Map()
  const colours = [] // the first one of each kind stands for its kind
  const pixels = new Uint8Array(data.length / 4)
  for (let at = 0; at < data.length; at += 4) {
    const colour = [data[at], data[at + 1], data[at + 2]]
    const kind = colour.reduce((all, value) => all * 64 + Math.floor(value / fine), 0)
    if (!numbers.has(kind)) numbers.set(kind, colours.push(colour) - 1)
    pixels[at / 4] = numbers.get(kind)
  }
  const palette = new Uint8Array(colours.flat())
  return [canvas.width, canvas.height, palette.toBase64(), pixels.toBase64()]
}`

/** The share of pixels that differ, and a picture of where: 1 and no picture for two sizes. */
const compareInPage = `async (first, second, most) => {
  const [one, other] = await Promise.all([first, second].map(async (url) => {
    const picture = new Image()
    picture.src = url
    await picture.decode()
    const canvas = document.createElement("canvas")
    canvas.width = picture.width
    canvas.height = picture.height
    const context = canvas.getContext("2d")
    context.drawImage(picture, 0, 0)
    return { canvas, context, data: context.getImageData(0, 0, picture.width, picture.height) }
  }))
  const [a, b] = [one.data, other.data]
  if (a.width !== b.width || a.height !== b.height) return [1, second]
  let differing = 0
  for (let at = 0; at < a.data.length; at += 4) {
    const is_same = [0, 1, 2].every((c) => Math.abs(a.data[at + c] - b.data[at + c]) <= most)
    if (!is_same) differing++
    const [red, rest] = is_same ? [230, 230] : [220, 0]
    b.data.set([red, rest, rest, 255], at)
  }
  other.context.putImageData(b, 0, 0)
  return [differing / (a.data.length / 4), other.canvas.toDataURL("image/png")]
}`

/**
 * What differs from run to run is the same in every picture: ids, keys, times, ports. The cursor is hidden. A frame
 * begins at a whole pixel, since the letters in one that begins between two are drawn in one of two ways.
 */
const STEADY = `(() => {
  const steady = [
    [/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, "01900000-0000-7000-8000-000000000000"],
    [/(svc_live_|svc_test_)\\w+/g, "$1x"],
    [/req_\\w+/g, "req_x"],
    [/(127\\.0\\.0\\.1|localhost):\\d+/g, "$1:8080"],
    [/\\d{4}-\\d\\d-\\d\\d([T ])\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?/g, "2026-01-01$112:00:00"],
    [/\\b\\d{1,2} [A-Z][a-z]+ \\d{4}\\b/g, "1 January 2026"],
    [/\\b\\d+\\/\\d+\\/20\\d\\d\\b/g, "1/1/2026"],
    [/\\b\\d\\d?:\\d\\d(:\\d\\d)?( [AP]M)?\\b/g, "12:00"],
    [/\\b\\d+ (s|second|seconds|min|minute|minutes) ago/g, "now"],
    [/Belfry \\d+\\.\\d+\\.\\d+/g, "Belfry 0.0.0"],
  ]
  const tell = (text) => steady.reduce((all, [form, to]) => all.replace(form, to), text)
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const told = tell(node.data)
    if (told !== node.data) node.data = told
  }
  for (const field of document.querySelectorAll("input, textarea")) field.value = tell(field.value)
  for (const frame of document.querySelectorAll("iframe")) {
    const { top } = frame.getBoundingClientRect()
    frame.style.marginBlockStart = Math.ceil(top) - top + "px"
  }
  document.activeElement?.blur()
})()`
