import { domainToASCII } from "node:url"
import ipaddr from "ipaddr.js"

/** The public suffix list takes megabytes of memory, so it is loaded at its first use. */
const tldts = (): typeof import("tldts") => require("tldts")

const SUFFIXES = { allowPrivateDomains: true, validateHostname: false }
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Leaves room for the longest selector and `._domainkey.` within the 253 of a name (RFC 1035 2.3.4). */
const MAX_NAME = 180

/**
 * A domain that mail may be sent from, as A-labels in lower case without a dot at the end, or the
 * reason why it is none: an IP address, no host name, one that is too long, or a public suffix such
 * as `co.uk`.
 */
export function readDomain(text: string): { name: string } | { reason: string } {
  const bare = text.replace(/^ +| +$/g, "").replace(/\.$/, "")
  if (ipaddr.isValid(bare.replace(/^\[|\]$/g, ""))) {
    return { reason: "An IP address is not a domain. Give a name such as example.com." }
  }
  const name = wireForm(bare)
  const labels = name.split(".")
  const top = labels.at(-1) ?? ""
  const fits = labels.length > 1 && labels.every((label) => LABEL.test(label))
  if (!fits || /^(?:\d+|0x[0-9a-f]*)$/.test(top)) {
    return {
      reason: "It is not a host name. Give a name such as example.com, without http:// or @.",
    }
  }
  if (name.length > MAX_NAME) {
    const text = `A domain may have at most ${MAX_NAME} characters, so that the names of its records fit.`
    return { reason: `${text} It has ${name.length}.` }
  }
  if (tldts().getPublicSuffix(name, SUFFIXES) === name) {
    return {
      reason: `${name} is a public suffix, which nobody owns. Give a domain below it that you own.`,
    }
  }
  return { name }
}

/**
 * A part of a name as names are kept: `Bücher.ex` is in `xn--bcher-kva.example.`, with the final dot.
 * Undefined for what no name has in it.
 */
export function partOf(text: string): string | undefined {
  const labels = text.replace(/^ +| +$/g, "").split(".")
  const kept = labels.map((label) => (label === "" ? "" : wireForm(label) || " "))
  const part = kept.join(".")
  return /^[a-z0-9.-]*$/.test(part) ? part : undefined
}

const wireForm = (text: string) =>
  /^[\x00-\x7f]*$/.test(text) ? text.toLowerCase() : aLabels(text)

/** `domainToASCII` reads a host of a URL: what has a meaning only there must not reach it. */
const aLabels = (text: string) =>
  /^[A-Za-z0-9.\u0080-\u{10ffff}-]+$/u.test(text) ? domainToASCII(text) : ""

/** The part that its owner registered, which DNS providers call the zone; the name itself if none. */
export const organizational = (name: string): string => tldts().getDomain(name, SUFFIXES) ?? name

/** Whether a name is one that a registry gives names below: `com`, `co.uk`, but not `github.io`. */
export const isSuffix = (name: string) =>
  tldts().getPublicSuffix(name, { ...SUFFIXES, allowPrivateDomains: false }) === name

/** One label or several, to be put before a domain. */
export const isLabels = (text: string) =>
  text.length <= 63 && text.split(".").every((label) => LABEL.test(label))

/** A host as the zone's own form wants it: without the zone, `@` for the zone itself. */
export function relativeTo(host: string, zone: string): string {
  if (host === zone) return "@"
  return host.endsWith(`.${zone}`) ? host.slice(0, -zone.length - 1) : host
}

/** The name and those above it, down to what was registered: `a.b.example.com` gives three. */
export function upTo(name: string, zone: string): string[] {
  const all = [name]
  for (let rest = name; rest !== zone && rest.includes("."); ) {
    rest = rest.slice(rest.indexOf(".") + 1)
    all.push(rest)
  }
  return all
}
