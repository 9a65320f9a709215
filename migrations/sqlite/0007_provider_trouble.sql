CREATE TABLE `instance_refusals` (
	`id` text PRIMARY KEY NOT NULL,
	`provider` text NOT NULL,
	`reason` text NOT NULL,
	`paused_until` integer NOT NULL,
	`probe_message_id` text,
	`began_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `provider_configs` ADD `trouble_since` integer;--> statement-breakpoint
ALTER TABLE `provider_configs` ADD `probe_message_id` text;--> statement-breakpoint
CREATE INDEX `provider_configs_in_trouble` ON `provider_configs` (`id`) WHERE status = 'error';