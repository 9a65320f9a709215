import { describe, expect, test } from "bun:test"
import { type Belfry, startBelfry } from "../harness/binary"
import { startBrowser } from "../harness/browser"
import { startDesktop } from "../harness/desktop"
import { missing, missingModules } from "../harness/peers"
import { startWebPushService } from "../harness/web-push-service"
import { until } from "./mails"
import { data, mailWith, write } from "./page-mails"
import { startPushSite } from "./push-site"
import { lean } from "./serve"

interface ShownPush {
  id: string
  status: string
  opened_at: string | null
  error_code: string | null
}

/** A server, a shop, and Firefox on a desktop, whose push service is ours. */
async function shopInFirefox() {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startBelfry({ env: lean }))
  const service = stack.use(startWebPushService())
  const desktop = stack.use(await startDesktop())
  const person = { external_id: "user-42", email: "ann@mailbox.test" }
  const { id: subscriber_id } = await write<{ id: string }>(
    server,
    "POST",
    "/v1/subscribers",
    person,
  )
  const site = stack.use(await startPushSite(server))
  const prefs = {
    "dom.push.serverURL": service.url,
    "dom.push.connection.enabled": true, // which a driven browser does without
    "dom.push.testing.allowInsecureServerURL": true,
  }
  const browser = stack.use(await startBrowser("firefox-esr", { env: desktop.env, prefs }))
  const page = stack.use(await browser.open(site.origin))
  await page.tab.browserContext().overridePermissions(site.origin, ["notifications"])
  const kept = stack.move()
  return {
    ...{ server, service, desktop, site, page, subscriber_id },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

const pushed = (server: Belfry, id: string, is: (push: ShownPush) => boolean) =>
  until("the push message", async () => {
    const push = await data<ShownPush>(server, `/v1/push/${id}`)
    return is(push) && push
  })

describe.skipIf(missing("firefox-esr") || missingModules("dbusmock"))("in Firefox", () => {
  test("a page of another origin subscribes, and what its worker shows reads delivered, then opened", async () => {
    await using shop = await shopInFirefox()
    const { server, service, desktop, page, site, subscriber_id } = shop
    await page.click("Notify me")
    await until("the device", async () => {
      const devices = await data<unknown[]>(server, "/v1/devices?user_id=user-42")
      return devices.length === 1
    })

    const wanted = { title: "Paid", body: "Thank you", url: "/orders/1" }
    const sent = await write<{ id: string }>(server, "POST", "/v1/push", {
      external_id: "user-42",
      ...wanted,
    })
    const paid = await desktop.shown("Paid")
    expect(paid.body).toBe("Thank you")
    const delivered = await pushed(server, sent.id, ({ status }) => status === "delivered")
    expect(delivered.opened_at).toBeNull()
    await desktop.click(paid)
    await pushed(server, sent.id, ({ opened_at }) => opened_at !== null)
    const pages = () => page.tab.browser().pages()
    const opened = async () =>
      (await pages()).some((one) => one.url() === `${site.origin}/orders/1`)
    await until("the page of the order", opened)

    await write(server, "POST", "/v1/topics", { key: "offers", name: "Offers" })
    await write(server, "POST", "/v1/topics/offers/subscribers", {
      subscriber_ids: [subscriber_id],
    })
    const publish = {
      channels: ["email", "push"],
      content: {
        email: { from: "shop@mailbox.test", subject: "Winter sale", text: "Lamps" },
        push: { title: "Winter sale", action_buttons: [{ id: "see", label: "See", url: "/sale" }] },
      },
    }
    await write(server, "POST", "/v1/topics/offers/publish", publish)
    const sale = await desktop.shown("Winter sale")
    await mailWith(server, "Winter sale")
    await desktop.click(
      sale,
      sale.actions.find((name) => name.startsWith("see")),
    )
    const published = await until("the push of the publish", async () => {
      const list = await data<(ShownPush & { title: string })[]>(server, "/v1/push?user_id=user-42")
      return list.find(({ title, status }) => title === "Winter sale" && status === "delivered")
    })
    await pushed(server, published.id, ({ opened_at }) => opened_at !== null)

    service.subscriptions.clear()
    // A page that the click opened may register again just then, so that the next push finds it gone.
    await until("the device that is gone", async () => {
      const late = await write<{ id: string }>(server, "POST", "/v1/push", {
        external_id: "user-42",
        ...wanted,
      })
      const failed = await pushed(server, late.id, ({ status }) => status === "failed")
      expect(failed.error_code).toBe("unregistered")
      const [device] = await data<{ status: string }[]>(server, "/v1/devices?user_id=user-42")
      return device?.status === "expired"
    })
    expect(page.problems).toEqual([])
  })
})
