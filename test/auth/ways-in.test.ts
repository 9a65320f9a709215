import { expect, test } from "bun:test"
import { findForUpdate, type NewEndUser } from "../../src/auth/end-users"
import { ENVIRONMENT_DEFAULTS } from "../../src/auth/environment-settings"
import { requireWayIn, waysIn } from "../../src/auth/ways-in"
import { newApplication, signedUp } from "../harness/application"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

type Methods = Partial<typeof ENVIRONMENT_DEFAULTS.methods>

/** A user of an environment with these methods, who has these fields. */
async function person(methods: Methods, wanted: NewEndUser) {
  const settings = { methods: { ...ENVIRONMENT_DEFAULTS.methods, ...methods } }
  const shop = await newApplication(service, await service.project(), { settings })
  const environment = await shop.environment()
  const { id } = await signedUp(service, shop, wanted)
  const read = () => findIn(shop.project_id, id)
  const kinds = async () => waysIn(environment, await read())
  return { environment, read, kinds }
}

const findIn = (project_id: string, id: string) =>
  store.tx((tx) => findForUpdate(tx, project_id, id))

const EVERYTHING: NewEndUser = {
  ...{ password_hash: "x", email_verified: true, anonymous_device_id: "device" },
  ...{ phone_number: "+436601234567", phone_verified: true },
}

test("what a user has is a way in where the environment allows it", async () => {
  const all = await person({ phone_otp: true, anonymous: true }, EVERYTHING)
  expect(await all.kinds()).toEqual(["password", "email", "phone", "device"])
  const usual = await person({}, EVERYTHING)
  expect(await usual.kinds()).toEqual(["password", "email"])
  const by_link = await person({ password: false, email_otp: false }, EVERYTHING)
  expect(await by_link.kinds()).toEqual(["email"])
  const none = await person({ email_otp: false, magic_link: false, password: false }, EVERYTHING)
  expect(await none.kinds()).toEqual([])
  expect(await (await person({}, { email_verified: false })).kinds()).toEqual([])
})

test("a passkey and an account elsewhere keep each other from being the last one", async () => {
  const { environment, read } = await person({}, { email_verified: false })
  const user = await read()
  const passkey = { ...user, mfa_methods: ["passkey" as const] }
  const account = { id: "1", provider: "google", provider_user_id: "1", email: null, linked_at: "" }
  const linked = { ...passkey, identities: [account] }
  expect(waysIn(environment, linked)).toEqual(["passkey", "identity"])
  expect(() => requireWayIn(environment, user)).toThrow("only way")
  for (const one of [passkey, { ...linked, mfa_methods: [] }]) requireWayIn(environment, one)
  const off = { ...environment.settings.methods, oauth: false, passkey: false }
  const closed = { ...environment, settings: { ...environment.settings, methods: off } }
  expect(waysIn(closed, linked)).toEqual([])
})
