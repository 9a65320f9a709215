import { expect, test } from "bun:test"
import { AuthTexts } from "../../src/auth/texts"
import { newApplication } from "../harness/application"
import { deliverTexts } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const texts = new AuthTexts({ ...service.parts, store: service.store })
const CODE = "482913"
const ADA = "+436601234567"

async function accepted(settings = {}) {
  const project = await service.project()
  const app = await newApplication(service, project, { settings })
  const environment = await app.environment("test")
  const ready = await texts.prepare(environment, { to: ADA, code: CODE, ends_in_seconds: 600 })
  const id = await service.store.tx((tx) => ready.accept(tx))
  return { project, environment, id }
}

test("a code leaves as it is, and reads show it masked", async () => {
  const { project, environment, id } = await accepted({
    sms_origin: "shop.test",
    android_sms_hash: "FA+9qCX9VSu",
  })
  const waiting = texts.waitForFirstAttempt(environment, id)
  await deliverTexts(service)
  expect(await waiting).toBe("sent")
  const { data } = (await project.get(`/v1/sms/${id}`)).body
  expect(data).toMatchObject({ is_test: true, status: "sent" })
  expect(data.body).toBe("•••• is your code for Shop.\nFA+9qCX9VSu\n\n@shop.test #••••")
})

test("a text without a provider is 503, and one that is refused is told", async () => {
  const project = await service.project()
  const app = await newApplication(service, project)
  const live = await app.environment("live")
  const unsent = texts.requireTexts(live, ADA)
  expect(await unsent.catch((error) => [error.code, error.status])).toEqual([
    "sms_not_configured",
    503,
  ])
  const { environment, id } = await accepted()
  await deliverTexts(service, "refused")
  expect(await texts.waitForFirstAttempt(environment, id)).toBe("refused")
})
