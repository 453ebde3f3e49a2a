"""The lecture: short pages on how memory decides the speed of a filter, with live pictures.

Each page is data, a `LecturePage`: controls declared as parameters, and a function that maps the
user's picture and the values of the controls to a drawing and numbers; its text is in
``resources/lecture``. Numbers come from the launch plans of the filters, from closed forms, from
the data sheets of `traffic.gpus`, from runs of the program's own code on the picture, and from
recorded figures; each `NamedNumber` names its origin. Free of Qt.
"""
