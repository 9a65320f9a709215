import { expect, test } from "bun:test"
import { routeTable } from "../../src/app"
import { grants, isScope, isWithinOwn, SCOPES } from "../../src/identity/scopes"

test.each<[string[], string, boolean]>([
  [["email:read"], "email:read", true],
  [["email:read"], "email:send", false],
  [[], "email:read", false],
  [["*"], "email:read", true],
  [[], "-", true],
  [["sms:read"], "email:read|push:read|sms:read", true],
  [["sms:send"], "email:read|push:read|sms:read", false],
  [["email:*"], "email:read", false],
  [["*"], "role:operator", false],
  [["email:read"], "role:project_admin", false],
  [["settings:read"], "settings:read|role:operator", true],
])("%j for %s: %p", (scopes, required, expected) => {
  expect(grants(scopes, required)).toBe(expected)
})

test("nobody hands on more than he has", () => {
  expect(isWithinOwn(["*"], ["*"])).toBe(true)
  expect(
    isWithinOwn(
      [...SCOPES].filter((scope) => scope !== "*"),
      ["*"],
    ),
  ).toBe(false)
  expect(isWithinOwn(["email:read", "email:send"], ["email:send"])).toBe(true)
  expect(isWithinOwn(["email:read"], ["email:read", "email:send"])).toBe(false)
})

test("every scope that a route asks for exists", () => {
  const asked = routeTable({} as never).flatMap(({ scope }) => scope.split("|"))
  const known = (scope: string) => scope === "-" || scope.startsWith("role:") || isScope(scope)
  expect(asked.filter((scope) => !known(scope))).toEqual([])
  expect(isScope("email:fly")).toBe(false)
})
