ALTER TABLE `domains` ADD `provider_dkim` text;--> statement-breakpoint
CREATE INDEX `deliveries_exhausted` ON `deliveries` (`completed_at`) WHERE status = 'exhausted';