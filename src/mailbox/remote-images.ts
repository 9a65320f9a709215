import { NetError, request } from "../core/net"
import { monotonic } from "../core/time"
import { unavailable } from "../http/envelope"
import { imageType } from "../lib/image-type"
import { OwnerTurns, Semaphore } from "../lib/semaphore"
import type { LinkRules } from "./check-mail"

/** Of one mail, each address once. */
const MOST_IMAGES = 20
/** Of all images of a mail together. */
const MOST_IMAGE_BYTES = 10 * 1024 * 1024
/** For all images of a mail together. */
const LOAD_MS = 10_000
const REQUEST_MS = 5_000
const AT_ONCE = 4
const MOST_REDIRECTS = 5

/**
 * Loads at the same time on this node, since each holds up to 10 MB and some connections. One project has one, and may
 * let one more wait.
 */
const turns = new OwnerTurns(2, { of_one: 1, of_all: 4 })

const BUSY = "Remote images of other mails are being loaded. Try again in some seconds."

/** Runs `load` when no other load of the project does. Throws 503 `service_unavailable` where too many wait. */
export async function withLoadPermit<Result>(project_id: string, load: () => Promise<Result>) {
  const turn = turns.acquire(project_id)
  if (!turn) throw unavailable(BUSY, "busy", LOAD_MS / 1000)
  const leave = await turn
  try {
    return await load()
  } finally {
    leave()
  }
}

/**
 * The images behind the first 20 addresses, as far as they come within ten seconds and have 10 MB together. Each
 * request and each redirect goes where webhooks may go and nowhere else, without a cookie and a referrer. What is no
 * image by its first bytes is left out, whatever its server calls it. Keeps nothing.
 */
export async function loadImages(
  urls: string[],
  rules: LinkRules,
): Promise<Map<string, Uint8Array>> {
  const images = new Map<string, Uint8Array>()
  const ends_at = monotonic() + LOAD_MS
  const permits = new Semaphore(AT_ONCE)
  let room = MOST_IMAGE_BYTES
  const load = async (url: string) => {
    const leave = await permits.acquire()
    try {
      const image = await fetchImage(url, { rules, ends_at, capture_bytes: room })
      if (image === undefined || image.length > room) return
      room -= image.length
      images.set(url, image)
    } finally {
      leave()
    }
  }
  await Promise.all(urls.slice(0, MOST_IMAGES).map(load))
  return images
}

/** What a reader is told of so many images that were loaded, of so many that the mail has. */
export function loadedText(loaded: number, found: number): string {
  if (found === 0) return "This mail has no remote images that can be shown."
  if (loaded === found) return `${found} remote ${found === 1 ? "image is" : "images are"} loaded.`
  return `${loaded} of ${found} remote ${found === 1 ? "image is" : "images are"} loaded. ${LIMITS}`
}

const LIMITS = `The server loads at most ${MOST_IMAGES} images and ${MOST_IMAGE_BYTES / 1024 ** 2} MB in ${LOAD_MS / 1000} seconds, from public addresses alone. It shows PNG, JPEG, GIF, WebP, AVIF and BMP.`

interface ImageLimits {
  rules: LinkRules
  ends_at: number
  capture_bytes: number
}

/** Undefined where nothing comes that a page could show. */
async function fetchImage(url: string, limits: ImageLimits): Promise<Uint8Array | undefined> {
  const { rules, ends_at, capture_bytes } = limits
  let at = url
  for (let hops = 0; hops <= MOST_REDIRECTS; hops++) {
    const left_ms = Math.min(rules.timeout_ms ?? REQUEST_MS, ends_at - monotonic())
    if (left_ms <= 0 || capture_bytes === 0) return undefined
    const headers = { accept: "image/*" }
    const asked = { ...rules, url: at, headers, timeout_ms: Math.ceil(left_ms), capture_bytes }
    const answer = await request(asked).catch(withoutAnswer)
    if (!answer) return undefined
    const { status, body, truncated } = answer
    const location = status >= 300 && status < 400 ? answer.headers.get("location") : null
    if (location === null) return status === 200 && !truncated && imageType(body) ? body : undefined
    at = URL.parse(location, at)?.href ?? ""
  }
  return undefined
}

function withoutAnswer(error: unknown): undefined {
  if (!(error instanceof NetError)) throw error
}
