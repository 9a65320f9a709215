CREATE TABLE "passkey_challenges" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"user_id" uuid,
	"kind" text NOT NULL,
	"challenge" text NOT NULL,
	"name" text,
	"challenge_hash" text,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "user_backup_codes" (
	"user_id" uuid NOT NULL,
	"code_hash" text NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"project_id" uuid NOT NULL,
	CONSTRAINT "user_backup_codes_user_id_code_hash_pk" PRIMARY KEY("user_id","code_hash")
);
--> statement-breakpoint
CREATE TABLE "user_challenges" (
	"token_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"attempts" bigint NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"project_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"provider" text NOT NULL,
	"amr" text NOT NULL,
	"organization_id" uuid
);
--> statement-breakpoint
CREATE TABLE "user_factors" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"method" text NOT NULL,
	"secret" text,
	"phone_number" text,
	"last_step" bigint,
	"code_hashes" text NOT NULL,
	"verified_at" bigint,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "user_passkeys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"name" text NOT NULL,
	"credential_id" text COLLATE "C" NOT NULL,
	"public_key" text NOT NULL,
	"counter" bigint NOT NULL,
	"transports" text NOT NULL,
	"backed_up" boolean NOT NULL,
	"last_used_at" bigint,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "organization_invitations" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"organization_id" uuid NOT NULL,
	"email" text NOT NULL,
	"email_key" text COLLATE "C" NOT NULL,
	"role" text NOT NULL,
	"accepted_at" bigint,
	"revoked_at" bigint,
	"expires_at" bigint NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "gaming_providers" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"application_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"provider" text NOT NULL,
	"enabled" boolean NOT NULL,
	"bundle_ids" text NOT NULL,
	"team_id" text,
	"client_id" text,
	"client_secret" text,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "oauth_flows" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"provider" text NOT NULL,
	"user_id" uuid,
	"redirect_url" text NOT NULL,
	"client_state" text,
	"code_challenge" text,
	"cookie_hash" text,
	"secrets" text,
	"code_hash" text,
	"code_expires_at" bigint,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "oauth_providers" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"application_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"provider" text NOT NULL,
	"client_id" text NOT NULL,
	"client_secret" text,
	"scopes" text NOT NULL,
	"enabled" boolean NOT NULL,
	"issuer" text,
	"team_id" text,
	"key_id" text,
	"private_key" text,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "used_assertions" (
	"hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "user_identities" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"provider" text NOT NULL,
	"provider_user_id" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
DROP INDEX "memberships_by_user";--> statement-breakpoint
ALTER TABLE "auth_environments" ADD COLUMN "allowed_email_domains" text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE "auth_environments" ADD COLUMN "passkey_rp_id" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "organizations" ADD COLUMN "search_key" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "organizations" ADD COLUMN "mfa_required" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "organizations" ADD COLUMN "allowed_email_domains" text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE "organizations" ADD COLUMN "metadata" text DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "user_links" ADD COLUMN "invitation_id" uuid;--> statement-breakpoint
ALTER TABLE "user_sessions" ADD COLUMN "stepped_up_at" bigint;--> statement-breakpoint
ALTER TABLE "user_sessions" ADD COLUMN "lacks_factor" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "mfa_methods" text DEFAULT '[]' NOT NULL;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "mfa_enabled_at" bigint;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "identities" text DEFAULT '[]' NOT NULL;--> statement-breakpoint
CREATE INDEX "passkey_challenges_by_user" ON "passkey_challenges" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "passkey_challenges_by_expiry" ON "passkey_challenges" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "passkey_challenges_by_project" ON "passkey_challenges" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "user_backup_codes_by_project" ON "user_backup_codes" USING btree ("project_id","user_id");--> statement-breakpoint
CREATE INDEX "user_challenges_by_user" ON "user_challenges" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "user_challenges_by_expiry" ON "user_challenges" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "user_challenges_by_project" ON "user_challenges" USING btree ("project_id","token_hash");--> statement-breakpoint
CREATE UNIQUE INDEX "user_factors_by_method" ON "user_factors" USING btree ("user_id","method");--> statement-breakpoint
CREATE INDEX "user_factors_by_project" ON "user_factors" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "user_passkeys_by_credential" ON "user_passkeys" USING btree ("environment_id","credential_id");--> statement-breakpoint
CREATE INDEX "user_passkeys_by_user" ON "user_passkeys" USING btree ("user_id","id");--> statement-breakpoint
CREATE INDEX "user_passkeys_by_project" ON "user_passkeys" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "organization_invitations_by_organization" ON "organization_invitations" USING btree ("organization_id","id");--> statement-breakpoint
CREATE INDEX "organization_invitations_by_address" ON "organization_invitations" USING btree ("organization_id","email_key");--> statement-breakpoint
CREATE INDEX "organization_invitations_of_address" ON "organization_invitations" USING btree ("project_id","email_key");--> statement-breakpoint
CREATE INDEX "organization_invitations_by_project" ON "organization_invitations" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "gaming_providers_by_name" ON "gaming_providers" USING btree ("environment_id","provider");--> statement-breakpoint
CREATE INDEX "gaming_providers_by_application" ON "gaming_providers" USING btree ("application_id","id");--> statement-breakpoint
CREATE INDEX "gaming_providers_by_project" ON "gaming_providers" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "oauth_flows_by_code" ON "oauth_flows" USING btree ("code_hash");--> statement-breakpoint
CREATE INDEX "oauth_flows_by_user" ON "oauth_flows" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "oauth_flows_by_expiry" ON "oauth_flows" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "oauth_flows_by_project" ON "oauth_flows" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "oauth_providers_by_name" ON "oauth_providers" USING btree ("environment_id","provider");--> statement-breakpoint
CREATE INDEX "oauth_providers_by_application" ON "oauth_providers" USING btree ("application_id","id");--> statement-breakpoint
CREATE INDEX "oauth_providers_by_project" ON "oauth_providers" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "used_assertions_by_expiry" ON "used_assertions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "used_assertions_by_project" ON "used_assertions" USING btree ("project_id","hash");--> statement-breakpoint
CREATE UNIQUE INDEX "user_identities_by_account" ON "user_identities" USING btree ("environment_id","provider","provider_user_id");--> statement-breakpoint
CREATE INDEX "user_identities_by_user" ON "user_identities" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "user_identities_by_project" ON "user_identities" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "auth_environments_by_rp_id" ON "auth_environments" USING btree ("passkey_rp_id","id");--> statement-breakpoint
CREATE INDEX "memberships_in_organization" ON "memberships" USING btree ("organization_id","id");--> statement-breakpoint
CREATE INDEX "memberships_of_owners" ON "memberships" USING btree ("organization_id") WHERE role = 'owner';--> statement-breakpoint
CREATE INDEX "user_links_by_invitation" ON "user_links" USING btree ("invitation_id");--> statement-breakpoint
CREATE INDEX "memberships_by_user" ON "memberships" USING btree ("user_id","organization_id");--> statement-breakpoint
UPDATE "auth_environments" SET "passkey_rp_id" = "settings"::jsonb ->> 'passkey_rp_id';--> statement-breakpoint
UPDATE "organizations" SET "search_key" = lower("name") || ' ' || "slug";--> statement-breakpoint
INSERT INTO "counters" ("project_id", "name", "shard", "value") SELECT "project_id", 'auth_organizations', 0, count(*) FROM "organizations" GROUP BY "project_id";--> statement-breakpoint
INSERT INTO "counters" ("project_id", "name", "shard", "value") SELECT "project_id", 'auth_organizations.environment_id.' || "environment_id"::text, 0, count(*) FROM "organizations" GROUP BY "project_id", "environment_id";--> statement-breakpoint
INSERT INTO "counters" ("project_id", "name", "shard", "value") SELECT "project_id", 'memberships', 0, count(*) FROM "memberships" GROUP BY "project_id";--> statement-breakpoint
INSERT INTO "counters" ("project_id", "name", "shard", "value") SELECT "project_id", 'memberships.organization_id.' || "organization_id"::text, 0, count(*) FROM "memberships" GROUP BY "project_id", "organization_id";
