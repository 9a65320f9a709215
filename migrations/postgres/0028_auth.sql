CREATE TABLE "application_keys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"application_id" uuid NOT NULL,
	"environment" text,
	"name" text NOT NULL,
	"key" text NOT NULL,
	"last_used_at" bigint,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "applications" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text NOT NULL,
	"slug" text NOT NULL,
	"type" text NOT NULL,
	"logo_url" text,
	"session_duration_minutes" bigint NOT NULL,
	"refresh_token_duration_days" bigint NOT NULL,
	"allowed_origins" text NOT NULL,
	"redirect_urls" text NOT NULL,
	"secret_hash" text NOT NULL,
	"previous_secret_hash" text,
	"previous_expires_at" bigint,
	"deleting_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "auth_environments" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"application_id" uuid NOT NULL,
	"name" text NOT NULL,
	"settings" text NOT NULL,
	"captcha_secret" text,
	"default_organization_id" uuid NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memberships" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"organization_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	"role" text NOT NULL,
	"permissions" text NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "organizations" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"application_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"name" text NOT NULL,
	"slug" text NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "user_codes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"code_hash" text NOT NULL,
	"attempts" bigint NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"project_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"purpose" text NOT NULL,
	"identifier" text COLLATE "C" NOT NULL,
	"user_id" uuid,
	"message_id" uuid
);
--> statement-breakpoint
CREATE TABLE "user_links" (
	"token_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"used_at" bigint,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"project_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"user_id" uuid,
	"email" text NOT NULL,
	"redirect_url" text,
	"purpose" text,
	"message_id" uuid
);
--> statement-breakpoint
CREATE TABLE "user_password_history" (
	"id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"password_hash" text NOT NULL,
	"created_at" bigint NOT NULL,
	"project_id" uuid NOT NULL
);
--> statement-breakpoint
CREATE TABLE "user_refresh_tokens" (
	"token_hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"session_id" uuid NOT NULL,
	"created_at" bigint NOT NULL,
	"used_at" bigint,
	"successor" text,
	"expires_at" bigint NOT NULL,
	"project_id" uuid NOT NULL
);
--> statement-breakpoint
CREATE TABLE "user_sessions" (
	"id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"ip" text,
	"user_agent" text,
	"created_at" bigint NOT NULL,
	"last_used_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"revoked_at" bigint,
	"project_id" uuid NOT NULL,
	"application_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"organization_id" uuid NOT NULL,
	"amr" text NOT NULL,
	"auth_time" bigint NOT NULL,
	"act" text
);
--> statement-breakpoint
CREATE TABLE "user_throttles" (
	"subject" text COLLATE "C" PRIMARY KEY NOT NULL,
	"used" bigint NOT NULL,
	"ends_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "users" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"application_id" uuid NOT NULL,
	"environment_id" uuid NOT NULL,
	"environment" text NOT NULL,
	"email" text,
	"email_key" text COLLATE "C",
	"email_verified" boolean NOT NULL,
	"phone_number" text,
	"phone_verified" boolean NOT NULL,
	"name" text,
	"search_key" text NOT NULL,
	"avatar_url" text,
	"locale" text,
	"metadata" text NOT NULL,
	"app_metadata" text NOT NULL,
	"status" text NOT NULL,
	"status_reason" text,
	"password_hash" text,
	"is_anonymous" boolean NOT NULL,
	"anonymous_device_id" text,
	"subscriber_id" uuid,
	"last_organization_id" uuid,
	"first_activity_at" bigint,
	"last_login_at" bigint,
	"active_month" text,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "inbox_tickets" ADD COLUMN "session_id" uuid;--> statement-breakpoint
ALTER TABLE "signing_keys" ADD COLUMN "application_id" uuid;--> statement-breakpoint
CREATE UNIQUE INDEX "application_keys_by_key" ON "application_keys" USING btree ("key");--> statement-breakpoint
CREATE INDEX "application_keys_by_application" ON "application_keys" USING btree ("application_id","id");--> statement-breakpoint
CREATE INDEX "application_keys_by_project" ON "application_keys" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "applications_by_slug" ON "applications" USING btree ("project_id","slug");--> statement-breakpoint
CREATE INDEX "applications_by_project" ON "applications" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "applications_by_secret" ON "applications" USING btree ("secret_hash");--> statement-breakpoint
CREATE INDEX "applications_by_previous_secret" ON "applications" USING btree ("previous_secret_hash");--> statement-breakpoint
CREATE UNIQUE INDEX "auth_environments_by_name" ON "auth_environments" USING btree ("application_id","name");--> statement-breakpoint
CREATE INDEX "auth_environments_by_project" ON "auth_environments" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "memberships_by_organization" ON "memberships" USING btree ("organization_id","user_id");--> statement-breakpoint
CREATE INDEX "memberships_by_user" ON "memberships" USING btree ("user_id","id");--> statement-breakpoint
CREATE INDEX "memberships_by_project" ON "memberships" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "organizations_by_slug" ON "organizations" USING btree ("environment_id","slug");--> statement-breakpoint
CREATE INDEX "organizations_by_environment" ON "organizations" USING btree ("environment_id","id");--> statement-breakpoint
CREATE INDEX "organizations_by_project" ON "organizations" USING btree ("project_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "user_codes_by_identifier" ON "user_codes" USING btree ("environment_id","identifier","purpose");--> statement-breakpoint
CREATE INDEX "user_codes_by_user" ON "user_codes" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "user_codes_by_expiry" ON "user_codes" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "user_codes_by_project" ON "user_codes" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "user_links_by_user" ON "user_links" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "user_links_by_expiry" ON "user_links" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "user_links_by_project" ON "user_links" USING btree ("project_id","token_hash");--> statement-breakpoint
CREATE INDEX "user_password_history_by_user" ON "user_password_history" USING btree ("user_id","id");--> statement-breakpoint
CREATE INDEX "user_password_history_by_project" ON "user_password_history" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "user_refresh_tokens_by_session" ON "user_refresh_tokens" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "user_refresh_tokens_by_expiry" ON "user_refresh_tokens" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "user_refresh_tokens_by_project" ON "user_refresh_tokens" USING btree ("project_id","token_hash");--> statement-breakpoint
CREATE INDEX "user_sessions_by_user" ON "user_sessions" USING btree ("user_id","id");--> statement-breakpoint
CREATE INDEX "user_sessions_open" ON "user_sessions" USING btree ("user_id","revoked_at","id");--> statement-breakpoint
CREATE INDEX "user_sessions_by_expiry" ON "user_sessions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "user_sessions_by_project" ON "user_sessions" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "user_throttles_by_end" ON "user_throttles" USING btree ("ends_at");--> statement-breakpoint
CREATE UNIQUE INDEX "users_by_email" ON "users" USING btree ("environment_id","email_key");--> statement-breakpoint
CREATE UNIQUE INDEX "users_by_phone" ON "users" USING btree ("environment_id","phone_number");--> statement-breakpoint
CREATE UNIQUE INDEX "users_by_device" ON "users" USING btree ("environment_id","anonymous_device_id");--> statement-breakpoint
CREATE INDEX "users_by_environment" ON "users" USING btree ("environment_id","id");--> statement-breakpoint
CREATE INDEX "users_by_status" ON "users" USING btree ("environment_id","status","id");--> statement-breakpoint
CREATE INDEX "users_by_project" ON "users" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "users_of_address" ON "users" USING btree ("project_id","email_key");--> statement-breakpoint
CREATE INDEX "users_of_phone" ON "users" USING btree ("project_id","phone_number");--> statement-breakpoint
CREATE INDEX "users_of_subscriber" ON "users" USING btree ("project_id","subscriber_id");--> statement-breakpoint
CREATE INDEX "signing_keys_by_application" ON "signing_keys" USING btree ("application_id","id");