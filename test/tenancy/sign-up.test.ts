import { expect, test } from "bun:test"
import { refusal } from "../harness/client"
import { team } from "../harness/people"
import { testService } from "../harness/service"

const NEWCOMER = { name: "Kim", password: "Correct-Horse-7" }
const EMAIL = "kim@people.test"

test("an invitation makes no new user where signing up is closed, and stays open", async () => {
  await using service = await testService({ sign_up: "closed" })
  const { anybody, mails } = service
  const { owner } = await team(service)
  await owner.post("/v1/accounts/me/members/invite", { email: EMAIL, role: "member" })
  const mail = mails.findLast(({ to }) => to === EMAIL)
  const token = /\/invitation\/(\S+)/.exec(mail?.text ?? "")?.[1] ?? ""

  const refused = await anybody.post(`/v1/invitations/${token}/accept`, NEWCOMER)
  expect(refusal(refused)).toEqual([403, "forbidden"])
  const { status, body } = await anybody.get(`/v1/invitations/${token}`)
  expect([status, body.data.user_exists]).toEqual([200, false])
})
