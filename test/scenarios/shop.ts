import type { CDPSession, Protocol } from "puppeteer-core"
import type { Belfry } from "../harness/binary"
import type { BrowserPage, TestBrowser } from "../harness/browser"
import { get, until } from "./mails"
import { data } from "./page-mails"

/** What a page of an application does with passkeys: the calls of WebAuthn Level 3 alone. */
export const WEBAUTHN = `
const create = async (options) => (await navigator.credentials.create({
  publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })).toJSON()
const get = async (options) => (await navigator.credentials.get({
  publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })).toJSON()
`

/** Serves one page from another origin than the server. It is asked for at each visit. */
export function siteOf(page: () => string) {
  const site = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch: () => new Response(page(), { headers: { "content-type": "text/html" } }),
  })
  return { origin: `http://localhost:${site.port}`, [Symbol.dispose]: () => void site.stop(true) }
}

/** The newest mail to an address, with its code or link. */
export const mailTo = (server: Belfry, to: string, found: RegExp) =>
  until("the mail", async () => {
    const [newest] = await data<{ id: string }[]>(server, `/v1/mailbox?to=${to}`)
    if (!newest) return undefined
    const { text } = await get<{ text: string }>(server, `/v1/mailbox/${newest.id}`)
    return found.exec(text)?.[0]
  })

/** At `oidc-provider`: the name, and that the shop may know it. */
export async function consent({ tab }: BrowserPage) {
  await tab.waitForSelector("input[name=login]")
  await tab.type("input[name=login]", "ann")
  await tab.type("input[name=password]", "anything")
  await Promise.all([tab.waitForNavigation(), tab.click("button[type=submit]")])
  await tab.waitForSelector("input[name=prompt][value=consent]")
  await tab.click("button[type=submit]")
}

/** A tab of a page with an authenticator, which knows its person unless a test says otherwise. */
export async function tabWithAuthenticator(browser: TestBrowser, origin: string) {
  const page = await browser.open(origin)
  const devtools = await page.tab.createCDPSession()
  await devtools.send("WebAuthn.enable")
  const { authenticatorId } = await devtools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      ...{ protocol: "ctap2", transport: "internal", hasResidentKey: true },
      ...{ hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
    },
  })
  return { page, ...authenticator(devtools, authenticatorId) }
}

const authenticator = (devtools: CDPSession, authenticatorId: string) => ({
  async kept(): Promise<Protocol.WebAuthn.Credential[]> {
    return (await devtools.send("WebAuthn.getCredentials", { authenticatorId })).credentials
  },
  /** Whether it recognizes the person from now on. */
  async know(isUserVerified: boolean) {
    await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified })
  },
  /** Has this one in place of what it has. */
  async keep(credential: Protocol.WebAuthn.Credential) {
    await devtools.send("WebAuthn.clearCredentials", { authenticatorId })
    await devtools.send("WebAuthn.addCredential", { authenticatorId, credential })
  },
})
