import widgets

widgets.paint(colour="red")
