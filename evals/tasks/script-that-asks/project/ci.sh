#!/bin/sh
sh release.sh
