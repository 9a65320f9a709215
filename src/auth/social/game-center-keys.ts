import { createPublicKey, type KeyObject } from "node:crypto"
import { readFileSync } from "node:fs"
import type { X509Certificate } from "@peculiar/x509"
import type { Settings } from "../../core/config"
import { GAME_CENTER_HOSTS } from "../../core/config-auth"
import { log } from "../../core/log"
import { request } from "../../core/net"
import { millis } from "../../core/time"
import { oncePer } from "../../store/cached"
import { certificatesIn, chainOf, issuerUrlsOf, maySign } from "./certificate-chains"
import { GAME_CENTER_ROOT } from "./game-center-root"

type KeySettings = Pick<Settings, "auth.game_center.hosts" | "auth.game_center.root">

const TIMEOUT_MS = 5000
const MOST_BYTES = 65_536

/** The platform has a few, and changes them once in a year or two. */
const MOST_KEPT = 50

const LEAST_BITS = 2048

/** Has the certificates of the authorities between. It can only offer them: the root decides. */
const ISSUER_HOSTS = ["cacerts.digicert.com"]

interface PlatformKey {
  key: KeyObject
  /** When the first certificate of the chain ends, in milliseconds. */
  ends_at: number
}

/** The keys by which Game Center signs, each kept until its certificates end. Throws where the root cannot be read. */
class GameCenterKeys {
  readonly #hosts: readonly string[]
  readonly #own_root: string | undefined
  readonly #kept = new Map<string, PlatformKey>()
  readonly #asked = new Map<string, Promise<PlatformKey | undefined>>()

  constructor({ "auth.game_center.hosts": hosts, "auth.game_center.root": root }: KeySettings) {
    this.#hosts = hosts
    this.#own_root = root === null ? undefined : readFileSync(root, "utf8")
  }

  /** The key of the certificate at a URL of the platform; undefined for any that does not prove to be one. */
  async at(url: string): Promise<KeyObject | undefined> {
    if (!this.#isOfPlatform(url)) return undefined
    const kept = this.#kept.get(url)
    const is_valid = kept !== undefined && kept.ends_at > millis()
    return (is_valid ? kept : await this.#askOnce(url))?.key
  }

  /** To the letter: what a URL parser would tidy up is no URL of the platform. */
  #isOfPlatform(text: string): boolean {
    if (!URL.canParse(text)) return false
    const { href, origin, search, hash } = new URL(text)
    const is_plain = href === text && text.startsWith(`${origin}/`) && !search && !hash
    return is_plain && this.#hosts.some((host) => origin === `https://${host}`)
  }

  /** Many players may come at once after a start. */
  #askOnce(url: string): Promise<PlatformKey | undefined> {
    const running = this.#asked.get(url)
    if (running) return running
    const asking = this.#read(url).finally(() => this.#asked.delete(url))
    this.#asked.set(url, asking)
    return asking
  }

  async #read(url: string): Promise<PlatformKey | undefined> {
    try {
      const found = await this.#proven(await this.#certificatesAt(url))
      if (!found) log.warn("a certificate of Game Center does not lead to its root", { url })
      if (this.#kept.size >= MOST_KEPT) this.#kept.clear()
      if (found) this.#kept.set(url, found)
      return found
    } catch (error) {
      log.warn("a certificate of Game Center cannot be read", { url, error })
      return undefined
    }
  }

  async #proven([leaf, ...others]: X509Certificate[]): Promise<PlatformKey | undefined> {
    if (!leaf || !maySign(leaf)) return undefined
    const roots = certificatesIn(new Uint8Array(Buffer.from(this.#own_root ?? GAME_CENTER_ROOT)))
    const around = { roots, others, issuersOf: (one: X509Certificate) => this.#issuersOf(one) }
    const chain = await chainOf(leaf, around)
    const at = millis()
    if (!chain?.every(({ notBefore, notAfter }) => +notBefore <= at && at < +notAfter))
      return undefined
    const spki = Buffer.from(leaf.publicKey.rawData)
    const key = createPublicKey({ key: spki, format: "der", type: "spki" })
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    if (key.asymmetricKeyType !== "rsa" || bits < LEAST_BITS) return undefined
    return { key, ends_at: Math.min(...chain.map(({ notAfter }) => +notAfter)) }
  }

  /** Without TLS it is as good: a certificate proves itself. */
  async #issuersOf(certificate: X509Certificate): Promise<X509Certificate[]> {
    const places = [...ISSUER_HOSTS, ...this.#hosts]
    const urls = issuerUrlsOf(certificate).filter((url) => URL.canParse(url))
    const url = urls.find((one) => places.includes(new URL(one).host))
    return url === undefined ? [] : this.#certificatesAt(url)
  }

  /** The operator names hosts other than the platform's, so they may be private, and have the operator's certificates. */
  async #certificatesAt(url: string): Promise<X509Certificate[]> {
    const { host, hostname } = new URL(url)
    const is_own = this.#hosts.includes(host) && !GAME_CENTER_HOSTS.includes(host)
    const trust = is_own
      ? { allow_private: [hostname], ca: this.#own_root }
      : { allow_private: [], ca: undefined }
    const limits = { timeout_ms: TIMEOUT_MS, capture_bytes: MOST_BYTES }
    const { status, body, truncated } = await request({ url, ...trust, ...limits })
    if (status !== 200 || truncated) throw new Error(`the answer is no certificate: ${status}`)
    return certificatesIn(body)
  }
}

export const gameCenterKeys = oncePer((settings: KeySettings) => new GameCenterKeys(settings))
