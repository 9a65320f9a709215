import { describe, expect, test } from "bun:test"
import type { AuthLetter } from "../../src/auth/mails"
import { AuthMail } from "../../src/auth/mails"
import { newApplication } from "../harness/application"
import { deliverAll } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

const CODE = "482913"

const letter: AuthLetter = {
  type: "email_otp",
  to: { email: "ada@mailbox.test" },
  variables: { code: CODE },
  ends_in_seconds: 600,
}

async function application() {
  const project = await service.project()
  const app = await newApplication(service, project)
  return { project, app, mail: new AuthMail(service.parts) }
}

describe("mail for end users", () => {
  test("shows its code to nobody but the recipient", async () => {
    const { project, app, mail } = await application()
    const ready = await mail.prepare(await app.environment(), letter)
    const id = await service.store.tx((tx) => ready.accept(tx))
    const waiting = await project.get(`/v1/emails/${id}`)
    expect(JSON.stringify(waiting.body)).not.toContain(CODE)
    expect(waiting.body.data).toMatchObject({
      stream: "auth",
      source: "auth",
      subject: "•••• is your code for Shop",
    })
    const [handed] = await deliverAll(service)
    expect(Buffer.from(handed?.raw ?? []).toString()).toContain(CODE)
    const over = await project.get(`/v1/emails/${id}`)
    expect(JSON.stringify(over.body)).not.toContain(CODE)
    expect(over.body.data.text).toContain("••••")
  })
})
